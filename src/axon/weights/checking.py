"""Finds damaged files of a model when it is opened. Mends nothing.

SHA-256 of a model of 16 GB takes 10 to 30 s, too long for every start, and a file's size and time alone do not show a
flipped byte. So the digests are computed in full, in parallel threads, unless the last full check still speaks for the
files. It does while all of this holds:

- device, inode, size, modification time and change time (ctime) of every file are those that the check saw. The kernel
  sets the ctime at every write and at every utime(), and no call sets it back, so a change by software always shows.
- The machine has not been rebooted since. Until then the pages that the check read may still be in memory; after it
  the bytes come from the disk anew, which may have lost some.
- The check is not older than ``weights.recheck_s``, because disks also lose bits while a machine runs.
"""

import asyncio
import contextlib
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

import msgspec

from axon.runtime.clock import Clock
from axon.weights.config import WeightsConfig
from axon.weights.manifest import Entry, Manifest, write_whole
from axon.weights.progress import Meter, OnProgress
from axon.weights.threads import THREADS

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_READ_BYTES = 8 << 20
CTIME_STEP_S = 0.05
"""A ctime has the granularity of the kernel's tick: a write this soon before the check began may share it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a full check saw."""

    at: float
    """Unix time when it began."""
    boot: str
    stamps: dict[str, tuple[int, int, int, int, int]]
    """Per file: device, inode, size, mtime and ctime in nanoseconds."""


async def damaged(
    folder: Path,
    manifest: Manifest,
    *,
    record: Path,
    config: WeightsConfig,
    clock: Clock,
    full: bool,
    on_progress: OnProgress,
) -> list[Entry]:
    """The entries whose files are missing or differ from their digests; notes a check that found none in ``record``."""
    if not full and is_trusted(folder, manifest, record=record, config=config, clock=clock):
        return []
    begun = clock.now()
    stamps = {entry.name: stamp(folder / entry.name) for entry in manifest.files}
    meter = Meter("checking", done=0, total=manifest.num_bytes, clock=clock, on_progress=on_progress)
    slots = asyncio.Semaphore(config.parallel)

    async def check(entry: Entry) -> bool:
        async with slots:
            return await _is_right(folder / entry.name, entry, meter)

    right = await asyncio.gather(*map(check, manifest.files))
    bad = [entry for entry, is_right in zip(manifest.files, right, strict=True) if not is_right]
    if not bad:
        note(record, stamps, at=begun)
    return bad


def is_trusted(folder: Path, manifest: Manifest, *, record: Path, config: WeightsConfig, clock: Clock) -> bool:
    """Whether the last full check still speaks for the files."""
    try:
        last = msgspec.json.decode(record.read_bytes(), type=Checked)
    except (OSError, msgspec.DecodeError):
        return False
    if last.boot != boot_id() or not 0 <= clock.now() - last.at <= config.recheck_s:
        return False
    for entry in manifest.files:
        found = stamp(folder / entry.name)
        if found is None or found != last.stamps.get(entry.name) or found[2] != entry.size:
            return False
        if found[4] / 1e9 > last.at - CTIME_STEP_S:
            return False
    return True


def note(record: Path, stamps: dict[str, tuple[int, int, int, int, int] | None], *, at: float) -> None:
    """Keeps what a full check saw; a read-only disk is checked in full each time."""
    seen = {name: each for name, each in stamps.items() if each is not None}
    with contextlib.suppress(OSError):
        write_whole(record, msgspec.json.encode(Checked(at=at, boot=boot_id(), stamps=seen)))


def stamp(path: Path) -> tuple[int, int, int, int, int] | None:
    """All that shows a change of a file without reading it; None where there is no such file."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def boot_id() -> str:
    """Names the kernel's run; empty where the system does not tell."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


async def _is_right(path: Path, entry: Entry, meter: Meter) -> bool:
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb", buffering=0) as file:
            if os.fstat(file.fileno()).st_size != entry.size:
                return False
            found = hashlib.sha256()
            while num_bytes := await THREADS.run_and_wait(_hash_some, file, found.update):
                meter.add(num_bytes)
    except OSError:  # missing, a link in its place, or a disk that cannot read it
        return False
    return found.hexdigest() == entry.sha256


def _hash_some(file: FileIO, update: Callable[[bytes], None]) -> int:
    """Reads and hashes one piece; both let other threads run."""
    chunk = file.read(_READ_BYTES)
    update(chunk)
    return len(chunk)
