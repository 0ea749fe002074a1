"""Compiles the C++ kernels into one shared library, once, and finds it again. Knows no model.

    python -m axon.engine.native.build [folder]

The library is looked for beside the sources, where a wheel carries it, then in the cache of earlier builds; else it is
built. Each instruction set is an object of its own, compiled with its own flags; which one runs is decided at run time,
so a library built on one machine works on every machine of its architecture.
"""

import fcntl
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from axon.errors import Misconfigured

logger = logging.getLogger(__name__)

GROUP_SIZE = 32
"""Inputs that share a scale: 64 would be 10 to 25 percent faster, but lose more than the goal for quality allows."""

_FOLDER = Path(__file__).parent
_COMPILERS = ("g++", "c++", "clang++")
_TIMEOUT_S = 300
_LOOK_S = 0.1
# No contraction: the sources say where a fused multiply-add is used, so that all machines agree to the bit.
_FLAGS = ("-O3", "-std=c++17", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-Wall", "-Wextra", "-pthread")
_AVX2_FLAGS = ("-mavx2", "-mfma")
_AVX512_FLAGS = (
    *_AVX2_FLAGS,
    *(f"-mavx512{part}" for part in ("f", "bw", "vl", "dq", "vnni")),
    "-mprefer-vector-width=512",
)


@dataclass(frozen=True, slots=True)
class _Unit:
    """One object file."""

    name: str
    source: str
    flags: tuple[str, ...] = ()
    instruction_set: str = ""
    """As ``axon_instruction_set`` names it."""
    may_be_left_out: bool = False
    """Whether compilers are still in use that do not know its flags."""


class NotBuilt(Misconfigured):
    """The native kernels could not be built."""


def default_folder() -> Path:
    """The default cache of built libraries."""
    return Path.home() / ".cache" / "axon" / "native"


def library(folder: Path | None = None) -> Path:
    """The path of the library for these sources, which is built if it is missing; raises NotBuilt."""
    cached = (folder or default_folder()) / file_name()
    for path in (_FOLDER / file_name(), cached):
        if path.is_file():
            return path
    compiler = find_compiler()
    with _alone(cached):
        if not cached.is_file():
            logger.warning(
                "building the native kernels (once, about ten seconds) into %s",
                cached,
                extra={"axon_event": "engine.kernels_built"},
            )
            build(cached, compiler)
    return cached


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Waits until no other process builds this library: engines that start together would each take every core."""
    deadline = time.monotonic() + 2 * _TIMEOUT_S
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        file = target.with_suffix(".lock").open("w")
    except OSError as error:
        raise NotBuilt(f"the native kernels could not be built in {target.parent}: {error}") from error
    with file:  # closing it gives the lock back, and so does the end of the process
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise NotBuilt(f"another process has been building {target} for {2 * _TIMEOUT_S} s") from None
                time.sleep(_LOOK_S)
        yield


def file_name(machine: str = "") -> str:
    """The file name of the library of these sources for an architecture, by default this machine's."""
    return f"kernel-{machine or platform.machine()}-{source_digest(machine)}.so"


def find_compiler(machine: str = "") -> str:
    """The path of a C++ compiler for an architecture, by default this machine's; raises NotBuilt."""
    is_foreign = machine not in ("", platform.machine())
    names = (f"{machine}-linux-gnu-g++",) if is_foreign else _COMPILERS
    for name in names:
        if path := shutil.which(name):
            return path
    if is_foreign:
        package = f"g++-{machine.replace('_', '-')}-linux-gnu"
        raise NotBuilt(f"the kernels for {machine} need {names[0]}, which is not here; Debian's package is {package}")
    raise NotBuilt(f"the native kernels need a C++ compiler, and none of {', '.join(_COMPILERS)} is here")


def build(target: Path, compiler: str, machine: str = "") -> None:
    """Compiles all units in parallel and renames the library into place atomically; raises NotBuilt."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as name:
            units = [unit for unit in _units(machine) if not unit.may_be_left_out or _knows(compiler, unit.flags)]
            objects = [f"{name}/{unit.name}.o" for unit in units]
            there = (f"-DAXON_HAS_{unit.name.upper()}" for unit in units if unit.may_be_left_out)
            common = (compiler, *_FLAGS, f"-DAXON_GROUP={GROUP_SIZE}", *there)
            _run_all(
                [*common, *unit.flags, "-c", str(_FOLDER / unit.source), "-o", to]
                for unit, to in zip(units, objects, strict=True)
            )
            _run_all([[compiler, "-shared", "-pthread", "-o", f"{name}/library.so", *objects]])
            os.replace(f"{name}/library.so", target)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotBuilt(f"the native kernels could not be built in {target.parent}: {error}") from error


@cache
def source_digest(machine: str = "") -> str:
    """A hash of the kernels' sources and compiler flags for an architecture, by default this machine's."""
    files = sorted([*_FOLDER.glob("*.cpp"), *_FOLDER.glob("*.h")])
    return _digest(repr((GROUP_SIZE, _FLAGS, _units(machine))), *(file.read_text(encoding="utf-8") for file in files))


def instruction_sets(machine: str = "") -> dict[str, str]:
    """The instruction sets that the kernels of an architecture are compiled for, and the step's symbol of each."""
    return {unit.instruction_set: f"step_{unit.name}" for unit in _units(machine) if unit.source == "step.cpp"}


def _units(machine: str = "") -> list[_Unit]:
    arm = ("-march=armv8.2-a+dotprod", "-fno-schedule-insns")
    matrices = ("-march=armv8.2-a+dotprod+i8mm", "-fno-schedule-insns")
    tiles = (*_AVX512_FLAGS, "-mamx-tile", "-mamx-int8")
    sets: dict[str, list[_Unit]] = {
        "aarch64": [
            *_arithmetic("neon", "neon-dotprod", arm),
            *_arithmetic("i8mm", "neon-i8mm", matrices, tile="neon", new=True),
        ],
        "x86_64": [
            *_arithmetic("avx2", "avx2", _AVX2_FLAGS),
            *_arithmetic("avx512", "avx512-vnni", _AVX512_FLAGS),
            *_arithmetic("amx", "amx-int8", tiles, tile="avx512", wide="amx", new=True),
        ],
    }
    machine = machine or platform.machine()
    common = [_Unit(name, f"{name}.cpp") for name in ("kernel", "drafting", "encoder_runner", "instruction_sets")]
    return [*_arithmetic("scalar", "scalar"), *sets.get(machine, []), *common, *_passes(machine)]


def _arithmetic(
    name: str,
    instruction_set: str,
    flags: tuple[str, ...] = (),
    *,
    tile: str = "",
    wide: str = "none",
    new: bool = False,
) -> list[_Unit]:
    """A decoder's step and an encoder's pass for one instruction set: the header of its tiles, and of its wide ones if
    it has them."""
    headers = (f'-DAXON_TILE="tile_{tile or name}.h"', f'-DAXON_WIDE="wide_{wide}.h"')
    return [
        _Unit(name, "step.cpp", (*flags, *headers, f"-DAXON_STEP=step_{name}"), instruction_set, new),
        _Unit(
            f"encoder_{name}", "encoder.cpp", (*flags, *headers, f"-DAXON_ENCODE=encode_{name}"), instruction_set, new
        ),
    ]


def _knows(compiler: str, flags: tuple[str, ...]) -> bool:
    """Whether the compiler takes these flags: older ones do not know the newest instruction sets."""
    command = (compiler, *flags, "-E", "-x", "c++", os.devnull)
    return subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S).returncode == 0


def _passes(machine: str) -> list[_Unit]:
    """The sampler, and its passes over logits for each instruction set: the float lanes of a tile, and nothing more."""
    flags: dict[str, dict[str, tuple[str, ...]]] = {
        "aarch64": {"neon": ("-march=armv8.2-a+dotprod",)},
        "x86_64": {"avx2": _AVX2_FLAGS, "avx512": _AVX512_FLAGS},
    }
    passes = [
        _Unit(f"passes_{tile}", "passes.cpp", (*each, f'-DAXON_TILE="tile_{tile}.h"', f"-DAXON_PASSES=passes_{tile}"))
        for tile, each in {"scalar": (), **flags.get(machine, {})}.items()
    ]
    return [*passes, _Unit("sampler", "sampler.cpp")]


def _run_all(commands: Iterable[Sequence[str]]) -> None:
    """Runs commands in parallel; once all have ended, raises NotBuilt for the first that failed."""
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for command in commands]
    try:
        outputs = [process.communicate(timeout=_TIMEOUT_S)[0] for process in running]
    finally:
        for process in running:
            process.kill()  # does nothing to one that has ended
            process.wait()
    for process, output in zip(running, outputs, strict=True):
        if process.returncode:
            raise NotBuilt(f"the C++ compiler failed: {output.decode(errors='replace')[-2000:]}")


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


if __name__ == "__main__":
    print(library(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
