"""File locks of the weights cache (flock): who fetches, and what is in use. A lock ends with the process that has it.

Lock files stay when they are free: to remove one would let two processes lock two files of the same name.
"""

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

_POLL_S = 0.2


@asynccontextmanager
async def turn(path: Path, on_wait: Callable[[], None]) -> AsyncIterator[bool]:
    """Holds the lock exclusively; yields whether it had to wait. ``on_wait`` is called again and again meanwhile."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    waited = False
    try:
        while not _try(descriptor, fcntl.LOCK_EX):
            waited = True
            on_wait()
            await asyncio.sleep(_POLL_S)
        yield waited
    finally:
        os.close(descriptor)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Holds the lock exclusively, for work of milliseconds; others block."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def if_free(path: Path) -> Iterator[bool]:
    """Holds the lock exclusively if nobody has it; yields whether it does."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        yield _try(descriptor, fcntl.LOCK_EX)
    finally:
        os.close(descriptor)


class UseMark:
    """A shared lock that says that a model is in use, until it is closed. Its file's time is that of the last use."""

    def __init__(self, path: Path) -> None:
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError:  # a read-only disk, on which nothing is evicted either
            self._descriptor = os.open(path, os.O_RDONLY)
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)
        self._touch()

    def close(self) -> None:
        self._touch()
        os.close(self._descriptor)

    def _touch(self) -> None:
        """Notes the time, by which the least recently used files give way first."""
        with contextlib.suppress(OSError):
            os.utime(self._descriptor)


def _try(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
