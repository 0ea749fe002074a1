"""Client programs of others, each in a virtual environment of its own with pinned packages, made once for all clones.

Their pins clash with ours and with each other's. ``make clients`` makes them all; a test makes the one it needs. They
are in the user's cache folder, by the hash of their pins and of the Python they were made with, so that a fresh clone
finds them; one that no test has used for a month is removed.
"""

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ENVIRONMENTS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "axon" / "clients"
REQUIREMENTS = Path(__file__).parent / "requirements"
PROGRAMS = Path(__file__).parent / "programs"
_INSTALL_S = 900
_RUN_S = 400
_KEPT_S = 30 * 24 * 3600.0
_STAMP = ".installed"
"""Written when an environment is whole; its time is that of the last use."""


def names() -> list[str]:
    """The clients there are."""
    return sorted(path.stem for path in REQUIREMENTS.glob("*.txt"))


def environment_of(name: str) -> Path:
    """The client's virtual environment, made now if it is not there."""
    pins = (REQUIREMENTS / f"{name}.txt").read_text()
    return made_once(f"{name}-{_made_from(pins)}", "bin/python", lambda folder: _make(folder, pins.split()))


def made_once(name: str, file: str, make: Callable[[Path], None]) -> Path:
    """The folder of this name in the cache, made now unless it is whole, which it is not without ``file``."""
    folder = ENVIRONMENTS / name
    with _alone(name):
        if not ((folder / _STAMP).exists() and (folder / file).exists()):
            make(folder)
        (folder / _STAMP).touch()
    return folder


def _made_from(pins: str) -> str:
    """A hash of all that decides what an environment holds."""
    python = (sys.version, sys.base_prefix, platform.machine())
    return hashlib.sha256("\n".join((*python, pins)).encode()).hexdigest()[:16]


def _make(folder: Path, pins: list[str]) -> None:
    make = [sys.executable, "-m", "venv", "--clear", "--without-pip", str(folder)]
    subprocess.run(make, check=True, timeout=_INSTALL_S)
    # Everything is pinned, so there is nothing to resolve; but torch needs other packages on other machines.
    _install(folder, "--no-deps", *(line for line in pins if not line.startswith("torch==")))
    if torch := [line for line in pins if line.startswith("torch==")]:
        _install(folder, *torch)


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """Of several test processes one makes the environment, the others wait for it."""
    ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    with (ENVIRONMENTS / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def remove_unused(now: float) -> list[str]:
    """Removes the environments that no test has used for a month; returns their names."""
    old = [stamp.parent for stamp in ENVIRONMENTS.glob(f"*/{_STAMP}") if now - stamp.stat().st_mtime > _KEPT_S]
    for folder in old:
        with _alone(folder.name):
            shutil.rmtree(folder, ignore_errors=True)
    return [folder.name for folder in old]


def _install(folder: Path, *what: str) -> None:
    quietly = ("--quiet", "--disable-pip-version-check", "--no-compile")
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    subprocess.run([*pip, "install", *quietly, *what], check=True, timeout=_INSTALL_S)


def run(name: str, command: list[str], *, cwd: Path, settings: Mapping[str, str], timeout_s: float = _RUN_S) -> str:
    """Runs a command of the client's environment, away from our own packages; returns what it prints."""
    folder = environment_of(name)
    settings = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", **settings}
    return run_alone([str(folder / "bin" / command[0]), *command[1:]], cwd=cwd, settings=settings, timeout_s=timeout_s)


def run_alone(command: list[str], *, cwd: Path, settings: Mapping[str, str], timeout_s: float = _RUN_S) -> str:
    """Runs a command away from our own packages and settings; returns what it prints."""
    done = subprocess.run(
        command,
        env={**_clean(), "HOME": str(cwd), **settings},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, (
        f"{command} ended with {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    )
    return done.stdout


def _clean() -> dict[str, str]:
    """The environment without what would change what a client does."""
    ours = ("AXON_", "PYTHON", "OPENAI_", "ANTHROPIC_", "CLAUDE", "CODEX_")
    return {key: value for key, value in os.environ.items() if not key.startswith(ours)}


def main() -> int:
    """Makes every environment, after those that nobody needs any more have gone."""
    for name in remove_unused(time.time()):
        print(f"{name}: removed")
    for name in names():
        print(f"{name}: {environment_of(name)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
