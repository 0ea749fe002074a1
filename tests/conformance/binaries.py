"""Coding agents that npm carries as binaries: each is fetched once for all clones, by the digest of its tarball.

They need neither Node.js nor npm. Where one cannot be had (no registry, another platform), the tests that need it skip
with the reason, or fail with REQUIRE_SERVERS=1, as those of servers do.
"""

import base64
import hashlib
import os
import platform
import shutil
import sys
import tarfile
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import pytest

from tests.conformance import clients

LOCK = clients.REQUIREMENTS / "binaries.json"
_REGISTRY = "https://registry.npmjs.org"
_SILENCE_S = 60.0
"""Seconds for which a registry may send nothing."""
_MACHINES = {"aarch64": "arm64", "arm64": "arm64", "x86_64": "x64", "AMD64": "x64"}


class Missing(Exception):
    """A program cannot be had on this machine."""


class Package(msgspec.Struct, frozen=True):
    """What the lock says of a program on one platform."""

    tarball: str
    """Path below the registry's address."""
    sha512: str
    program: str
    """The executable within the tarball."""


def names() -> list[str]:
    """The programs there are."""
    return sorted(_lock())


def program_of(name: str) -> Path:
    """The program's file, fetched now if it is not there; raises ``Missing`` with the reason."""
    here = f"{sys.platform}-{machine(platform.machine())}"
    package = _lock()[name].get(here)
    if package is None:
        raise Missing(f"no {name} is pinned for {here}")
    return unpacked(name, package)


def unpacked(name: str, package: Package) -> Path:
    """The package's file in the cache, fetched now if it is not there; raises ``Missing`` with the reason."""
    digest = hashlib.sha256(package.sha512.encode()).hexdigest()[:16]
    folder = clients.made_once(f"{name}-{digest}", package.program, partial(_make, package))
    return folder / package.program


def machine(name: str) -> str:
    """npm's name of a processor."""
    return _MACHINES.get(name, name)


def require(name: str) -> Path:
    """The program's file; skips the test where it cannot be had, or fails it with REQUIRE_SERVERS=1."""
    return or_skip(name, partial(program_of, name))


def or_skip(name: str, found: Callable[[], Path]) -> Path:
    """What is found; skips the test where it cannot be had, or fails it with REQUIRE_SERVERS=1."""
    try:
        return found()
    except Missing as error:
        reason = f"{name} is not there: {error}"
    if os.environ.get("REQUIRE_SERVERS") == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def _lock() -> dict[str, dict[str, Package]]:
    return msgspec.json.decode(LOCK.read_bytes(), type=dict[str, dict[str, Package]])


def _make(package: Package, folder: Path) -> None:
    """Fetches and unpacks; what was cut short is begun anew."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tarball = folder / "tarball"
    registry = os.environ.get("NPM_CONFIG_REGISTRY") or _REGISTRY
    try:
        _fetch(f"{registry.rstrip('/')}/{package.tarball}", tarball)
    except OSError as error:
        raise Missing(f"{package.tarball} cannot be fetched from {registry}: {error}") from error
    _check(tarball, package.sha512)
    with tarfile.open(tarball) as archive:
        archive.extractall(folder, filter="data")
    tarball.unlink()


def _fetch(url: str, path: Path) -> None:
    with urllib.request.urlopen(url, timeout=_SILENCE_S) as reply, path.open("wb") as file:
        shutil.copyfileobj(reply, file, 1 << 20)


def _check(path: Path, sha512: str) -> None:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha512").digest()
    found = base64.b64encode(digest).decode()
    assert found == sha512, f"{path} has the digest {found} and not {sha512}: the registry serves another file"


def main() -> int:
    """Fetches every program; says of those that cannot be had why."""
    for name in names():
        try:
            print(f"{name}: {program_of(name)}")
        except Missing as error:
            print(f"{name}: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
