"""Fetches one file: goes on where an earlier process was killed, hashes while it writes, tries again. Knows no cache.

    0 ................ verified ................ end of the file on disk
      synced, digest in   written, not synced:
      the manifest        dropped on resuming

A checkpoint syncs the file and then notes its length and digest. A resumed fetch trusts nothing else: it hashes the
verified bytes again (a disk reads them faster than a network), compares, and asks the source for the rest.
"""

import asyncio
import hashlib
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from axon.errors import FetchFailed, FetchInterrupted
from axon.weights.config import WeightsConfig
from axon.weights.manifest import Entry
from axon.weights.source import Check, Source
from axon.weights.threads import THREADS

if TYPE_CHECKING:
    from io import FileIO

CHECKPOINT_BYTES = 32 << 20
_READ_BYTES = 4 << 20
_MAX_BACKOFF_S = 30.0


class _Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...
    def hexdigest(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    """Whom a transfer tells how far it is."""

    note: Callable[[Entry], Awaitable[None]]
    """Takes a checkpoint, and the end."""
    moved: Callable[[int], None]
    """Takes the number of new bytes; a negative one when some were dropped."""


class Transfer:
    """One file on its way from a source to a path."""

    def __init__(
        self, source: Source, entry: Entry, path: Path, *, config: WeightsConfig, reports: Reports, checkpoint: int
    ) -> None:
        self._source, self._entry, self._path = source, entry, path
        self._config, self._reports, self._checkpoint = config, reports, checkpoint

    async def run(self) -> None:
        """Brings the file to its size and digest; raises ``FetchFailed``."""
        entry = self._entry
        draft = Draft(self._path, entry)
        try:
            await THREADS.run_and_wait(draft.open)
            self._reports.moved(draft.num_bytes - entry.verified)
            if entry.is_whole and draft.num_bytes == entry.size:
                return  # an earlier process had it all, and it is still as it was
            seen: list[str] = []
            while not await self._is_right(draft, seen):
                # The same wrong bytes twice: a third download would bring them as well.
                if len(seen) >= self._config.tries or seen[-1] in seen[:-1]:
                    raise FetchFailed(_differs(entry, self._source, len(seen)), code="checksum_mismatch")
                self._reports.moved(-draft.num_bytes)
                await THREADS.run_and_wait(draft.restart)
            await THREADS.run_and_wait(draft.sync)
            await self._reports.note(replace(entry, verified=entry.size, sha256=draft.sha256))
        finally:
            draft.close()

    async def _is_right(self, draft: "Draft", seen: list[str]) -> bool:
        """Receives the whole file and compares it with its checksum, where the source states one."""
        await self._receive_all(draft)
        check, found = self._entry.check, draft.sha256
        # The ETag of an encrypted bucket is no MD5: two downloads that agree are right.
        is_right = draft.matches(check) or (check is not None and check.kind == "md5" and found in seen)
        seen.append(found)
        return is_right and draft.num_bytes == self._entry.size

    async def _receive_all(self, draft: "Draft") -> None:
        """Receives until the stated size is there, with exponential backoff after each interruption."""
        failures = 0
        while draft.num_bytes < self._entry.size:
            before = draft.num_bytes
            try:
                await self._receive(draft)
                if draft.num_bytes < self._entry.size:
                    raise FetchInterrupted(f"{self._entry.name} ended after {draft.num_bytes} bytes.")
            except FetchInterrupted:
                failures = failures + 1 if draft.num_bytes == before else 1
                if failures >= self._config.tries:
                    raise
                longest = min(self._config.retry_s * 2 ** (failures - 1), _MAX_BACKOFF_S)
                await asyncio.sleep(random.uniform(longest / 2, longest))

    async def _receive(self, draft: "Draft") -> None:
        """Receives as much as one connection gives; what was written stays, whatever ends it."""
        async with aclosing(self._source.read(self._entry.stated, draft.num_bytes)) as chunks:
            while (chunk := await _next(chunks, self._config.timeout_s)) is not None:
                await THREADS.run_and_wait(draft.write, chunk)
                self._reports.moved(len(chunk))
                if draft.num_bytes >= self._entry.size:
                    return  # a whole file is noted when its checksum was compared; a longer one is wrong
                if draft.num_unsynced >= self._checkpoint:
                    await THREADS.run_and_wait(draft.sync)
                    await self._reports.note(replace(self._entry, verified=draft.num_bytes, sha256=draft.sha256))


class Draft:
    """The file that is being written, and the hashes of what is in it. Its methods block."""

    def __init__(self, path: Path, entry: Entry) -> None:
        self._path, self._entry = path, entry
        self._file: FileIO | None = None
        self.num_bytes: int
        self.num_unsynced: int
        self._begin()

    def open(self) -> None:
        """Opens the file at its last checkpoint; at its start where the bytes are not those of the checkpoint."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # A link in the place of a file would lead out of the folder.
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        file = self._file = os.fdopen(descriptor, "r+b", buffering=0)
        entry = self._entry
        while missing := entry.verified - self.num_bytes:
            if not (chunk := file.read(min(missing, _READ_BYTES))):
                break
            self._count(chunk)
        if self.num_bytes == entry.verified and (not entry.verified or self.sha256 == entry.sha256):
            file.truncate(self.num_bytes)
            self.num_unsynced = 0
        else:
            self.restart()

    def restart(self) -> None:
        """Begins again at the file's start."""
        assert self._file is not None
        self._begin()
        self._file.seek(0)
        self._file.truncate(0)

    def write(self, chunk: bytes) -> None:
        assert self._file is not None
        view = memoryview(chunk)
        while view:  # unbuffered: a write may take a part
            view = view[self._file.write(view) :]
        self._count(chunk)

    def sync(self) -> None:
        assert self._file is not None
        os.fsync(self._file.fileno())
        self.num_unsynced = 0

    def matches(self, check: Check | None) -> bool:
        """Whether the bytes have this checksum; true where there is none."""
        if check is None:
            return True
        found = self.sha256 if self._other is None else self._other.hexdigest()
        return found == check.value

    @property
    def sha256(self) -> str:
        return self._sha256.hexdigest()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _begin(self) -> None:
        self.num_bytes = self.num_unsynced = 0
        self._sha256 = hashlib.sha256()
        self._other = _hash_for(self._entry.check, self._entry.size)

    def _count(self, chunk: bytes) -> None:
        self._sha256.update(chunk)
        if self._other is not None:
            self._other.update(chunk)
        self.num_bytes += len(chunk)
        self.num_unsynced += len(chunk)


def _hash_for(check: Check | None, size: int) -> _Hash | None:
    """The second hash that a stated checksum needs beside SHA-256; it finds accidents, and proves nothing."""
    match check:
        case Check(kind="md5"):
            return hashlib.md5(usedforsecurity=False)
        case Check(kind="git"):
            return hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
    return None


async def _next(chunks: AsyncIterator[bytes], timeout_s: float) -> bytes | None:
    try:
        async with asyncio.timeout(timeout_s):
            return await anext(chunks, None)
    except TimeoutError:
        raise FetchInterrupted(f"No byte came for {timeout_s:g} s.") from None


def _differs(entry: Entry, source: Source, tries: int) -> str:
    return (
        f"{entry.name} of {source.location.text} differs from its checksum after {tries} downloads: it is damaged "
        "there, or on its way through a proxy. Upload it again, or fetch past the proxy."
    )
