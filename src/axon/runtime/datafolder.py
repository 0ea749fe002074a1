"""The data folder of a server: file locks that limit who uses it, and secrets that only its owner can read."""

import contextlib
import fcntl
import itertools
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO
from urllib.parse import quote

from axon.errors import Misconfigured
from axon.runtime.syncing import sync

_POLL_S = 0.05


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds the folder's exclusive lock: a second server would run the first one's unfinished turns."""
    with _lock(folder, fcntl.LOCK_EX) as file:
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


@contextmanager
def shared(folder: Path) -> Iterator[None]:
    """Holds the folder's shared lock: processes of a fleet may share it, but not with a server that has it
    exclusively."""
    with _lock(folder, fcntl.LOCK_SH) as file:
        file.truncate(0)  # the process that it named has ended
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
def numbered(folder: Path, kind: str) -> Iterator[int]:
    """Gives the lowest number that no other process of this kind holds in the folder; a file lock frees it on exit."""
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
def own_name(folder: Path, name: str, *, wait_s: float) -> Iterator[bool]:
    """Makes a name this process's own among those that share the folder, as long as it lives; gives False if another
    process still has it after ``wait_s`` seconds. The file says whose it is."""
    path = _path_of_name(folder, name)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(path, "a") as file:
        deadline = time.monotonic() + wait_s
        while not (is_own := _try_lock(file)) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        if is_own:
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
        yield is_own


def holder_of_name(folder: Path, name: str) -> int | None:
    """The pid of the process whose own the name is; None if it is nobody's."""
    try:
        with open(_path_of_name(folder, name)) as file:
            if _try_lock(file, fcntl.LOCK_SH):
                return None
            text = file.read().strip()
            return int(text) if text.isdecimal() else None
    except FileNotFoundError:
        return None


def _path_of_name(folder: Path, name: str) -> Path:
    return folder / "names" / f"{quote(name, safe='#~')}.lock"


def _try_lock(file: TextIO, kind: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def alone(folder: Path, what: str) -> Iterator[None]:
    """Mutual exclusion between processes that share the folder; others block, so use it for short work only."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(folder / f"{what}.lock", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def read_or_make_secret(path: Path) -> str:
    """Reads the secret in a file; the first process to ask creates it."""
    with contextlib.suppress(FileExistsError):
        write_secret(path, secrets.token_hex(32))
    return path.read_text().strip()


def write_secret(path: Path, text: str) -> None:
    """Creates a file that only its owner can read, atomically; raises ``FileExistsError``."""
    with _secret_draft(path, text.encode()) as draft:
        os.link(draft, path)


def replace_secret(path: Path, secret: bytes) -> None:
    """The same, in place of a file that may be there."""
    with _secret_draft(path, secret) as draft:
        os.replace(draft, path)


@contextmanager
def _secret_draft(path: Path, secret: bytes) -> Iterator[Path]:
    """A file with the secret under another name, to be given its own in the block, whose name is synced after."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secret + b"\n")
        sync(draft)
        yield draft
        sync(path.parent)
    finally:
        draft.unlink(missing_ok=True)
