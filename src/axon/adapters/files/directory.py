"""Files in a directory: written beside it, synced, then renamed, so that a crash leaves a whole file or none.

Gateways on several machines need one directory that all of them see, such as NFS: a rename is atomic there too.
"""

import asyncio
import contextlib
import heapq
import os
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

from axon.adapters.files.names import checked, is_name, not_there
from axon.errors import DependencyDown
from axon.runtime.file_threads import FileThreads
from axon.runtime.syncing import sync
from axon.runtime.tasks import settled

_PIECE_BYTES = 1 << 18
_THREADS = FileThreads("axon-files", 32)

P = ParamSpec("P")
T = TypeVar("T")


class DirectoryFiles:
    """One file for each id under ``whole/``, and what is being written under ``partial/``."""

    def __init__(self, root: Path) -> None:
        self._whole, self._partial = root / "whole", root / "partial"

    async def open(self) -> None:
        """Makes the directories, which only their owner can read."""
        with _translated():
            await _THREADS.run(self._make)

    async def aclose(self) -> None:
        """Holds nothing open."""

    async def put(self, file_id: str, pieces: AsyncIterator[bytes]) -> int:
        path = self._partial / secrets.token_hex(16)
        target, num_bytes = self._path(file_id), 0
        with _translated():
            file = await _opened(_create, path)
        try:
            async for piece in pieces:
                num_bytes += len(piece)
                with _translated():
                    await _THREADS.run_to_end(_write, file, piece)
            with _translated():
                await _THREADS.run_to_end(_commit, file, path, target)
        finally:
            await _THREADS.run_to_end(_give_up, file, path)
        return num_bytes

    async def read(self, file_id: str) -> AsyncGenerator[bytes, None]:
        try:
            with _translated():
                file = await _opened(os.open, self._path(file_id), os.O_RDONLY)
        except FileNotFoundError:
            raise not_there(file_id) from None
        try:
            while True:
                with _translated():
                    piece = await _THREADS.run_to_end(os.read, file, _PIECE_BYTES)
                if not piece:
                    return
                yield piece
        finally:
            os.close(file)

    async def delete(self, file_id: str) -> None:
        with _translated():
            await _THREADS.run(self._delete, file_id)

    async def old(self, *, before: float, limit: int, after: str = "") -> Sequence[str]:
        with _translated():
            return await _THREADS.run(self._old, before, limit, after)

    def _make(self) -> None:
        for folder in (self._whole, self._partial):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _path(self, file_id: str) -> Path:
        return self._whole / checked(file_id)

    def _delete(self, file_id: str) -> None:
        self._path(file_id).unlink(missing_ok=True)
        sync(self._whole)

    def _old(self, before: float, limit: int, after: str) -> list[str]:
        for entry in _older(self._partial, before):
            Path(entry.path).unlink(missing_ok=True)
        names = (entry.name for entry in _older(self._whole, before))
        return heapq.nsmallest(limit, (name for name in names if name > after and is_name(name)))


def _older(folder: Path, before: float) -> list["os.DirEntry[str]"]:
    """The regular files of a folder that were last written before then. One that vanishes meanwhile is none of them."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                if entry.is_file(follow_symlinks=False) and entry.stat().st_mtime < before:
                    found.append(entry)
    return found


async def _opened(function: Callable[P, int], *args: P.args, **kwargs: P.kwargs) -> int:
    """Opens a file in a thread; if it is cancelled, the descriptor is closed."""
    future = asyncio.wrap_future(_THREADS.begin(function, *args, **kwargs))
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await settled(future)
        if future.exception() is None:
            os.close(future.result())
        raise


def _create(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


def _give_up(file: int, path: Path) -> None:
    """Closes what was written, and removes it where it has not become a whole file."""
    os.close(file)
    path.unlink(missing_ok=True)


def _write(file: int, piece: bytes) -> None:
    view = memoryview(piece)
    while view:
        view = view[os.write(file, view) :]


def _commit(file: int, path: Path, target: Path) -> None:
    os.fsync(file)
    os.replace(path, target)
    sync(target.parent)


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """Raises ``DependencyDown`` in place of a system's error, but for a file that is not there."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DependencyDown("The files cannot be reached.", code="files_unavailable") from error
