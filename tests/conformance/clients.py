"""Client programs of others, each in a virtual environment of its own with pinned packages, made once.

Their pins clash with ours and with each other's. ``make clients`` makes them all; a test makes the one it needs.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
ENVIRONMENTS = REPOSITORY / ".clients"
REQUIREMENTS = Path(__file__).parent / "requirements"
PROGRAMS = Path(__file__).parent / "programs"
_INSTALL_S = 900
_RUN_S = 400


def names() -> list[str]:
    """The clients there are."""
    return sorted(path.stem for path in REQUIREMENTS.glob("*.txt"))


def environment_of(name: str) -> Path:
    """The client's virtual environment, made now if it is not there or if its pins have changed."""
    pins = REQUIREMENTS / f"{name}.txt"
    folder, stamp = ENVIRONMENTS / name, ENVIRONMENTS / name / ".installed"
    wanted = hashlib.sha256(pins.read_bytes()).hexdigest()
    with _alone(name):
        if stamp.exists() and stamp.read_text() == wanted:
            return folder
        make = [sys.executable, "-m", "venv", "--clear", "--without-pip", str(folder)]
        subprocess.run(make, check=True, timeout=_INSTALL_S)
        lines = pins.read_text().split()
        # Everything is pinned, so there is nothing to resolve; but torch needs other packages on other machines.
        _install(folder, "--no-deps", *(line for line in lines if not line.startswith("torch==")))
        if torch := [line for line in lines if line.startswith("torch==")]:
            _install(folder, *torch)
        stamp.write_text(wanted)
    return folder


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """Of several test processes one makes the environment, the others wait for it."""
    ENVIRONMENTS.mkdir(exist_ok=True)
    with (ENVIRONMENTS / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _install(folder: Path, *what: str) -> None:
    quietly = ("--quiet", "--disable-pip-version-check", "--no-compile")
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    subprocess.run([*pip, "install", *quietly, *what], check=True, timeout=_INSTALL_S)


def run(name: str, command: list[str], *, cwd: Path, settings: Mapping[str, str], timeout_s: float = _RUN_S) -> str:
    """Runs a command of the client's environment, away from our own packages; returns what it prints."""
    folder = environment_of(name)
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("AXON_", "PYTHON", "OPENAI_"))}
    done = subprocess.run(
        [folder / "bin" / command[0], *command[1:]],
        env={**clean, "HOME": str(cwd), "PATH": f"{folder / 'bin'}:{clean['PATH']}", **settings},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, (
        f"{command} ended with {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    )
    return done.stdout


def main() -> int:
    """Makes every environment."""
    for name in names():
        print(f"{name}: {environment_of(name)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
