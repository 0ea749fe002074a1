"""Makes room for a model: evicts the least recently used that nobody has open, and checks the disk. Fetches nothing."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from axon.weights import locks
from axon.weights.manifest import Manifest, read_manifest, write_manifest
from axon.weights.space import Kept, folder_bytes, over_limit, require_free, to_evict


class Room:
    """The space that the models of a cache share."""

    def __init__(self, root: Path, fetching: Path, limit_gb: float) -> None:
        self._root, self._fetching, self._limit_gb = root, fetching, limit_gb

    def kept(self) -> list[Kept]:
        """All models and unfinished fetches, with their sizes."""
        return [*self._models(), *self._partials()]

    def make(self, folder: Path, manifest: Manifest) -> None:
        """Evicts what the limit demands, then checks the disk; raises ``FetchFailed`` with the figures."""
        with locks.alone(self._root / "room.lock"):
            if limit := int(self._limit_gb * 1e9):
                self._evict(folder, needed=manifest.num_bytes, limit=limit)
            require_free(self._root, manifest.num_bytes - manifest.num_verified)
            write_manifest(folder, manifest)  # counts against the limit from now on

    def _evict(self, folder: Path, *, needed: int, limit: int) -> None:
        """Removes the least recently used that nobody has open, until the model of ``folder`` fits as well."""
        for left in (*self._root.glob(".removed-*"), *self._fetching.glob(".removed-*")):
            shutil.rmtree(left, ignore_errors=True)  # by a process that was killed
        while True:
            others = [each for each in self.kept() if each.folder != folder]
            order = to_evict(others, needed=needed, limit=limit)
            if order is None:
                raise over_limit(needed, limit, sum(each.num_bytes for each in others if each.in_use))
            if all(list(map(_remove, order))):  # else one came into use meanwhile: decide again
                return

    def _models(self) -> Iterator[Kept]:
        for lock in self._root.glob("*.lock"):
            folder = lock.with_suffix("")
            if folder.is_dir():
                yield _kept(folder, lock, folder_bytes(folder), lock.stat().st_mtime)

    def _partials(self) -> Iterator[Kept]:
        for lock in self._fetching.glob("*.lock"):
            folder = lock.with_suffix("")
            if (manifest := read_manifest(folder)) is not None:
                yield _kept(folder, lock, manifest.num_bytes, folder.stat().st_mtime)


def _kept(folder: Path, lock: Path, num_bytes: int, used_at: float) -> Kept:
    with locks.if_free(lock) as is_free:
        return Kept(folder=folder, lock=lock, num_bytes=num_bytes, used_at=used_at, in_use=not is_free)


def _remove(kept: Kept) -> bool:
    """Removes a model or an unfinished fetch if nobody has it open; renamed first, so that no half of it stays."""
    grave = kept.folder.with_name(f".removed-{kept.folder.name}")
    with locks.if_free(kept.lock) as is_free:
        if is_free:
            kept.folder.rename(grave)
    shutil.rmtree(grave, ignore_errors=True)
    return is_free
