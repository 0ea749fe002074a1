"""The folder that one engine has for its KV blocks: locked while it runs, taken up by the next one. Knows no blocks.

Below the folder of the settings each model has a folder, and in it each engine that runs a numbered one, the first that
nobody holds. So an engine that is started again finds what the one before it has left. The lock's file has the id of
the process that started the holder: where that is gone, the holder is about to end, and its folder is waited for.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_LOCK = "lock"
_MOST_HOMES = 1024
_ENDING_S = 3.0
"""Seconds in which an engine whose worker has died ends by itself."""
_POLL_S = 0.02


class Home:
    """A folder that this process holds until ``close``."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    def close(self) -> None:
        """Lets the folder go; what it holds stays."""
        os.close(self._lock)


def take_home(folder: Path, model: str) -> Home:
    """Takes the first folder of the model that no engine holds; raises ``OSError`` if none can be made."""
    for path in (folder, folder / model):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for number in range(_MOST_HOMES):
        path = folder / model / str(number)
        path.mkdir(mode=0o700, exist_ok=True)
        lock = _try_lock(path)
        if lock is None:
            lock = _await_ending(path)
        if lock is not None:
            os.ftruncate(lock, 0)
            os.pwrite(lock, str(os.getppid()).encode(), 0)
            return Home(path, lock)
    raise OSError(f"{folder / model} has {_MOST_HOMES} folders, and engines hold them all")


def sweep(folder: Path, *, max_bytes: int, max_age_s: float, now: float | None = None) -> None:
    """Removes what engines that no longer run have left: what is too old, and the oldest beyond ``max_bytes``."""
    now = time.time() if now is None else now
    left = sorted(_homes(folder), key=lambda path: -_changed_at(path))
    num_bytes = 0
    for path in left:
        if (lock := _try_lock(path)) is None:
            continue
        try:
            num_bytes += _size(path)
            is_old = max_age_s > 0 and now - _changed_at(path) > max_age_s
            if is_old or num_bytes > max_bytes:
                num_bytes -= _size(path)
                shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(lock)
        with suppress(OSError):
            path.parent.rmdir()  # only where it is empty


def _homes(folder: Path) -> Iterator[Path]:
    return (path for path in folder.glob("*/*") if (path / _LOCK).is_file())


def _try_lock(path: Path) -> int | None:
    try:
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.stat(path / _LOCK)  # a sweep may have removed the folder meanwhile
    except OSError:
        os.close(lock)
        return None
    return lock


def _await_ending(path: Path) -> int | None:
    """Waits for the lock of a holder whose worker is gone."""
    deadline = time.monotonic() + _ENDING_S
    while _is_orphaned(path) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
        if (lock := _try_lock(path)) is not None:
            return lock
    return None


def _is_orphaned(path: Path) -> bool:
    try:
        os.kill(int((path / _LOCK).read_text()), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError):
        return False
    return False


def _changed_at(path: Path) -> float:
    try:
        return max(entry.stat().st_mtime for entry in path.iterdir())
    except (OSError, ValueError):
        return 0.0


def _size(path: Path) -> int:
    try:
        return sum(entry.stat().st_blocks * 512 for entry in path.iterdir())
    except OSError:
        return 0
