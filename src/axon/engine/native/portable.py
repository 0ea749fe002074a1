"""What a built library asks of the system that loads it, and whether a wheel may promise that. Runs no kernel.

    python -m axon.engine.native.portable kernel-x86_64-….so

A wheel's tag ``manylinux_2_28`` promises that its machine code runs on every Linux with glibc 2.28 or newer (PEP 600):
Debian 10, Ubuntu 20.04, RHEL 8, Amazon Linux 2023 and everything after them. A symbol of a newer glibc or libstdc++
than those have would break that promise with an error of the dynamic linker at the first start of an engine. What the
package depends on may ask for more: docs/deploy.md says what a whole installation needs.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from axon.errors import Misconfigured

GLIBC = (2, 28)
"""The oldest glibc that a wheel's library must load on."""
_NEWEST = {"GLIBC": GLIBC, "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (8, 0)}
"""The newest symbol version of each kind that every such system has: those of its glibc, and of GCC 8's libraries."""
_LIBRARIES = re.compile(r"lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so\.\d+|ld-linux-[a-z0-9-]+\.so\.\d")


class NotPortable(Misconfigured):
    """A library asks for more than a wheel may promise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a library asks for."""

    libraries: tuple[str, ...]
    """Shared libraries that are loaded with it."""
    versions: tuple[str, ...]
    """Versions of their symbols, as in ``GLIBC_2.17``."""
    symbols: frozenset[str]
    """Names of the functions inside, mangled."""

    @property
    def glibc(self) -> str:
        """The oldest glibc that has all its symbols, such as ``2.17``."""
        return ".".join(
            map(str, max((_number(each) for each in self.versions if _kind(each) == "GLIBC"), default=(2,)))
        )


def needs_of(library: Path) -> Needs:
    """What the library asks for, as binutils' readelf says; raises NotPortable where that cannot be read."""
    command = ["readelf", "--wide", "--dynamic", "--version-info", "--symbols", str(library)]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    except OSError as error:
        raise NotPortable(f"{library} cannot be looked into without readelf (Debian's package binutils)") from error
    if ran.returncode or "(NEEDED)" not in ran.stdout:
        raise NotPortable(f"{library} is no shared library: {ran.stderr.strip() or 'it needs no other'}")
    return read(ran.stdout)


def read(text: str) -> Needs:
    """What readelf's text says."""
    return Needs(
        libraries=tuple(sorted(set(re.findall(r"\(NEEDED\)\s+Shared library: \[(.+?)\]", text)))),
        versions=tuple(sorted(set(re.findall(r"Name: ([A-Z]+_\d[\d.]*)\s", text)))),
        symbols=frozenset(re.findall(r"\sFUNC\s.*\s(\S+)$", text, re.MULTILINE)),
    )


def objections(needs: Needs, symbols: Iterable[str] = ()) -> list[str]:
    """Why a wheel must not carry it, a sentence each; ``symbols`` are parts of names that have to be inside."""
    found = [
        f"it needs {name}, which not every Linux has" for name in needs.libraries if not _LIBRARIES.fullmatch(name)
    ]
    for version in needs.versions:
        newest = _NEWEST.get(_kind(version))
        if newest is None or _number(version) > newest:
            found.append(f"it needs {version}, which a system with glibc {_text(GLIBC)} lacks")
    missing = [each for each in symbols if not any(each in name for name in needs.symbols)]
    return found + [f"it lacks {each}: the compiler was too old for its instruction set" for each in missing]


def platform_tag(machine: str) -> str:
    """The tag of a wheel that carries a portable library, such as ``manylinux_2_28_x86_64``."""
    return f"manylinux_{_text(GLIBC, '_')}_{machine}"


def check(library: Path, symbols: Iterable[str] = ()) -> Needs:
    """What the library asks for; raises NotPortable if that is more than a wheel may promise."""
    needs = needs_of(library)
    if found := objections(needs, symbols):
        raise NotPortable(f"{library.name} is not portable: {'; '.join(found)}. Build it on Debian 12, or an older one")
    return needs


def _kind(version: str) -> str:
    return version.partition("_")[0]


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.partition("_")[2].split("."))


def _text(number: tuple[int, ...], between: str = ".") -> str:
    return between.join(map(str, number))


if __name__ == "__main__":
    for _each in sys.argv[1:]:
        _needs = check(Path(_each))
        print(f"{_each}: glibc {_needs.glibc}; {' '.join(_needs.libraries)}; {' '.join(_needs.versions)}")
