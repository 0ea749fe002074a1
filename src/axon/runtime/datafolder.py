"""The folder of everything a server keeps: one owner at a time, secrets readable by it alone."""

import contextlib
import fcntl
import itertools
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from axon.errors import Misconfigured


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One server at a time: a second one would run the first one's unfinished turns."""
    with _lock(folder, fcntl.LOCK_EX) as file:
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


@contextmanager
def shared(folder: Path) -> Iterator[None]:
    """Processes of a fleet may share the folder with each other, and not with a server that has it to itself."""
    with _lock(folder, fcntl.LOCK_SH) as file:
        file.truncate(0)  # whose process it named is gone
        yield


@contextmanager
def _lock(folder: Path, kind: int) -> Iterator[TextIO]:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = open(folder / "lock", "a+")  # noqa: SIM115 - closed below
    except OSError as error:
        raise Misconfigured(f"The data folder {folder} cannot be used: {error.strerror}. See --data-dir.") from None
    with file:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            raise Misconfigured(
                f"Another server (pid {file.read().strip() or '?'}) uses the data folder {folder}. "
                "Stop it, or choose another folder with --data-dir."
            ) from None
        yield file


@contextmanager
def place(folder: Path, kind: str) -> Iterator[int]:
    """The first free of the folder's numbered places for processes of a kind; free again when this one is gone."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for number in itertools.count():
        with open(folder / f"{kind}-{number}.lock", "a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            yield number
            return


@contextmanager
def alone(folder: Path, what: str) -> Iterator[None]:
    """One process of those that share the folder at a time; the others wait. For what takes a moment."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(folder / f"{what}.lock", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def read_or_make_secret(path: Path) -> str:
    """The secret in a file; made on first use, by whoever comes first."""
    with contextlib.suppress(FileExistsError):
        write_secret(path, secrets.token_hex(32))
    return path.read_text().strip()


def write_secret(path: Path, text: str) -> None:
    """A new file that only its owner can read, there whole or not at all; raises ``FileExistsError``."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text + "\n")
        os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
