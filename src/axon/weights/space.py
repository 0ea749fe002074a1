"""Disk space of the weights cache: what must go so that a model fits, and errors of the disk as sentences."""

import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from axon.errors import FetchFailed

_MARGIN_BYTES = 16 << 20
"""Space that stays free for manifests and for others' small files."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A model, or an unfinished fetch, that takes space."""

    folder: Path
    lock: Path
    """Whoever uses it holds this lock."""
    num_bytes: int
    used_at: float
    """Unix time of its last use."""
    in_use: bool = False


def to_evict(kept: Sequence[Kept], *, needed: int, limit: int) -> list[Kept] | None:
    """The least recently used that nobody uses, as few as make room for ``needed`` bytes; None where all do not."""
    excess = sum(each.num_bytes for each in kept) + needed - limit
    order = []
    for each in sorted((each for each in kept if not each.in_use), key=lambda each: each.used_at):
        if excess <= 0:
            break
        order.append(each)
        excess -= each.num_bytes
    return order if excess <= 0 else None


def require_free(folder: Path, num_bytes: int) -> None:
    """Raises ``FetchFailed`` where the disk has no room for so many bytes more."""
    free, needed = shutil.disk_usage(folder).free, num_bytes + _MARGIN_BYTES
    if free < needed:
        raise FetchFailed(
            f"There is not enough space in {folder}: {size_text(needed)} more are needed there, and {size_text(free)} "
            "are free. Free some, set weights.limit_gb so that old models go by themselves, or choose another folder "
            "with models_dir.",
            code="disk_full",
        )


def over_limit(needed: int, limit: int, in_use: int) -> FetchFailed:
    """The error for a model that does not fit beside what is in use."""
    return FetchFailed(
        f"The model takes {size_text(needed)}, weights.limit_gb allows {size_text(limit)}, and {size_text(in_use)} are "
        "in use. Raise the limit, or stop a model that runs.",
        code="disk_full",
    )


def folder_bytes(folder: Path) -> int:
    """Bytes of all files below a folder, conversions and copies that the engine made included."""
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(where, name)).st_size
            except OSError:  # gone meanwhile
                continue
    return total


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turns errors of the disk into ``FetchFailed`` with what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise FetchFailed(
                f"The disk of {folder} is full ({error.strerror}). Free some space and run it again: it goes on where "
                "it stopped.",
                code="disk_full",
            ) from error
        if error.errno in _REFUSED:
            raise FetchFailed(
                f"{error.filename or folder} cannot be written: {error.strerror}. Give this user the right to write in "
                f"{folder}, or choose another folder with models_dir.",
                code="permission_denied",
            ) from error
        raise


def size_text(num_bytes: float) -> str:
    """A size in MB or GB (powers of ten), for people."""
    return f"{num_bytes / 1e9:,.1f} GB" if num_bytes >= 1e9 else f"{num_bytes / 1e6:,.1f} MB"
