"""Processors that this machine does not have, by qemu's user mode, and the programs of the other kind of machine.

TCG, qemu's translator, knows AVX2 and no AVX-512 or AMX: a library's code for those is compiled and looked for here,
and runs on real processors only.
"""

import platform
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.journeys.server import REPOSITORY

CHOICES: Mapping[str, Mapping[str, str]] = {
    "aarch64": {
        "cortex-a53": "scalar",  # 2012: no dot products
        "neoverse-n1": "neon-dotprod",
        "max": "neon-i8mm",
    },
    "x86_64": {
        "Nehalem": "scalar",  # 2008: SSE4.2
        "SandyBridge": "scalar",  # 2011: AVX without AVX2 and FMA
        "Haswell": "avx2",
        "max": "avx2",
    },
}
"""By kind of machine and processor, as qemu names it: the instruction set that the kernels must choose there."""

_DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
_PYTHON = "python3.11"
_BARE = ("-S",)
"""Without the module `site`, which takes an emulator as long as all the rest."""
_PACKAGES = (
    *("libc6", "libgcc-s1", "libstdc++6", "zlib1g", "libexpat1", "libssl3", "libffi8", "liblzma5", "libbz2-1.0"),
    *("libsqlite3-0", "libuuid1", "libcrypt1", "libpython3.11-minimal", "libpython3.11-stdlib", "python3.11-minimal"),
)


def require_emulator(machine: str) -> str:
    """The emulator for a kind of machine; skips the test where it is not installed."""
    found = shutil.which(f"qemu-{machine}-static") or shutil.which(f"qemu-{machine}")
    if found is None:
        pytest.skip(f"qemu-{machine}-static is not installed; Debian's package is qemu-user-static")
    return found


@dataclass(frozen=True, slots=True)
class Emulated:
    """A Python on an emulated processor."""

    machine: str
    python: tuple[str, ...]
    """The interpreter, and for the other kind of machine the folder that stands for its root."""
    root: Path | None = None

    def run(self, processor: str, program: str, *arguments: str, path: Path) -> str:
        """What a Python program prints there, with the packages of a folder."""
        root = ("-L", str(self.root)) if self.root else ()
        variables = {
            "PYTHONPATH": str(path),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HOME": "/nonexistent",
            "PATH": "/nonexistent",
        }
        if self.root:
            variables["PYTHONHOME"] = str(self.root / "usr")
        command = [require_emulator(self.machine), "-cpu", processor, *root, *self.python, "-c", program, *arguments]
        ran = subprocess.run(command, capture_output=True, text=True, env=variables)
        assert ran.returncode == 0, f"{command[:6]} ended with {ran.returncode}:\n{ran.stderr[-3000:]}"
        return ran.stdout.strip()


def own(python: str) -> Emulated:
    """This machine's Python on an older or newer processor of the same kind."""
    return Emulated(platform.machine(), (str(Path(python).resolve()), *_BARE))


def foreign(machine: str) -> Emulated:
    """The other kind of machine's Python, of Debian's packages in a folder; skips the test where they cannot be had."""
    require_emulator(machine)
    root = REPOSITORY / ".cache" / "roots" / machine
    if not (root / "whole").exists():
        _fetch(machine, root)
    return Emulated(machine, (str(root / "usr" / "bin" / _PYTHON), *_BARE), root)


def _fetch(machine: str, root: Path) -> None:
    """Unpacks Debian's packages, with lists of its own: nothing of this system's package manager is changed."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        pytest.skip("a Python for the other kind of machine comes from Debian's packages, and apt-get is not here")
    state = root / "apt"
    for folder in ("lists/partial", "cache/archives/partial"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    places = {"Dir::State": state, "Dir::State::lists": state / "lists", "Dir::State::status": state / "status"}
    places["Dir::Cache"] = state / "cache"
    options = [f"-o{name}={value}" for name, value in places.items()]
    options += [
        f"-oAPT::Architecture={_DEBIAN[machine]}",
        f"-oAPT::Architectures={_DEBIAN[machine]}",
        "-oAPT::Sandbox::User=root",
    ]
    for command in (["update"], ["download", *_PACKAGES]):
        ran = subprocess.run(["apt-get", "-q", *options, *command], capture_output=True, text=True, cwd=state)
        if ran.returncode:
            pytest.skip(f"no {_PYTHON} of Debian for {machine} can be had here: {ran.stderr.strip()[-300:]}")
    for package in sorted(state.glob("*.deb")):
        subprocess.run(["dpkg-deb", "--extract", str(package), str(root)], check=True)
    _copy_loaders(root)
    (root / "whole").touch()


def _copy_loaders(root: Path) -> None:
    """A link to an absolute path leads out of the folder: in its place stands what it means."""
    for link in [path for path in root.glob("lib*/ld-linux-*") if path.is_symlink()]:
        target = root / str(link.readlink()).lstrip("/") if link.readlink().is_absolute() else link.resolve()
        link.unlink()
        shutil.copy(target, link)
