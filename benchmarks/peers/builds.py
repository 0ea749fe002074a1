"""llama.cpp's builds in the order in which they are tried, and what a build's own help offers. Pure; compiles nothing.

``-march=native`` names what the processor has, not what the system lets a program use: with AMX a build may die of
SIGILL in a worker thread. The first build that answers is taken, and the manifest says which.
"""

import platform
import re
from dataclasses import dataclass

_X86 = ("x86_64", "AMD64")
_NO_AMX = "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
_NO_AVX512 = f"{_NO_AMX} -mno-avx512f"


@dataclass(frozen=True, slots=True)
class Build:
    """One way to compile it: a name for people, a folder, and flags of CMake."""

    name: str
    folder: str
    flags: tuple[str, ...]


def builds(machine: str = "") -> list[Build]:
    """The most that this kind of processor may run first."""
    native = Build("for this processor", "build", ("-DGGML_NATIVE=ON",))
    generic = Build("for any processor of its kind", "build-generic", ("-DGGML_NATIVE=OFF",))
    if (machine or platform.machine()) not in _X86:
        return [native, generic]
    # The compiler prefers an explicit -mno-… to what -march=native finds, in whatever order they stand.
    return [
        native,
        Build("for this processor without AMX", "build-no-amx", (*native.flags, *_compiler(_NO_AMX))),
        Build("for this processor without AMX and AVX-512", "build-no-avx512", (*native.flags, *_compiler(_NO_AVX512))),
        generic,
    ]


@dataclass(frozen=True, slots=True)
class Speculation:
    """One of its ways to draft without a second model."""

    name: str
    flags: tuple[str, ...]


def offered_speculation(help_text: str) -> list[Speculation]:
    """The ways that ``llama-server --help`` names beside ``--spec-type``. Those that look for an n-gram in the text so
    far come a second time with short ones, as for a small model: 3 tokens looked up, 8 drafted."""
    told = " ".join(re.findall(r"--spec-type(.*?)(?=\n\s*-|\Z)", help_text, re.DOTALL))
    found = []
    for kind in dict.fromkeys(re.findall(r"ngram-[a-z0-9]+(?:-[a-z0-9]+)*", told)):
        flags = ("--spec-type", kind)
        found.append(Speculation(kind, flags))
        sizes = (f"--spec-{kind}-size-n", f"--spec-{kind}-size-m")
        if all(size in help_text for size in sizes):
            found.append(Speculation(f"{kind}-3", (*flags, sizes[0], "3", sizes[1], "8")))
    return found


def _compiler(flags: str) -> tuple[str, ...]:
    return f"-DCMAKE_C_FLAGS={flags}", f"-DCMAKE_CXX_FLAGS={flags}"
