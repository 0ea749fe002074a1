"""The local weights cache: models by digest, fetched once per machine and checked when they are opened. Runs no model.

<models_dir>/by-digest/
    <digest>/             the files of a model, and its manifest
    <digest>.lock         shared by whoever has the model open; its time is that of the last use
    <digest>.checked      what the last full check of the digests saw
    fetching/<key>/       an unfinished fetch with its manifest, and <key>.lock of the process that fetches
    fetching/<key>.found  the digest that this fetch ended with
    text/<digest>/        tokenizer and template alone, for gateways (see text.py)
"""

import asyncio
import hashlib
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from axon.errors import AxonError, FetchFailed
from axon.runtime.clock import Clock, SystemClock
from axon.weights import checking, locks
from axon.weights.config import WeightsConfig
from axon.weights.filling import Filling
from axon.weights.manifest import Entry, Manifest, drop_drafts, new_manifest, read_manifest, write_whole
from axon.weights.names import check_digest, choose
from axon.weights.progress import Meter, OnProgress, Progress, ignore
from axon.weights.room import Room
from axon.weights.source import Check, Source, file_of
from axon.weights.space import Kept, disk_errors, folder_bytes
from axon.weights.sums import with_sums
from axon.weights.threads import THREADS
from axon.weights.transfer import CHECKPOINT_BYTES

_ROUNDS = 3
"""Tries to open what another process may evict between its fetch and its use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """A model that is open: it stays on disk until its context ends."""

    digest: str
    folder: Path
    manifest: Manifest
    revision: str = ""
    """The source's revision now, where it has one and was asked; the manifest's is that of the first fetch."""
    skipped: tuple[tuple[str, str], ...] = ()
    """Files of the source that are left there, with the reason; empty where it was not asked."""

    @property
    def gguf(self) -> Path | None:
        """The .gguf file, or the first part of a split one; None for a folder of safetensors."""
        names = sorted(entry.name for entry in self.manifest.files if entry.name.endswith(".gguf"))
        return self.folder / names[0] if names else None


class HeldWeights:
    """A model's files that are not evicted until ``close``."""

    def __init__(self, weights: Weights, mark: locks.UseMark) -> None:
        self._weights, self._mark = weights, mark
        self._stamps = self._look()

    @property
    def folder(self) -> Path:
        return self._weights.folder

    def is_whole(self) -> bool:
        """Whether every file is as it was when this was opened, by what shows a change without reading it."""
        return self._look() == self._stamps and None not in self._stamps

    def close(self) -> None:
        self._mark.close()

    def _look(self) -> list[tuple[int, int, int, int, int] | None]:
        return [checking.stamp(self.folder / entry.name) for entry in self._weights.manifest.files]


@dataclass(frozen=True, slots=True)
class _Fetched:
    """A model that is here, and what its source said of it."""

    digest: str
    revision: str = ""
    skipped: tuple[tuple[str, str], ...] = ()

    def opened(self, root: Path, manifest: Manifest) -> Weights:
        return Weights(
            digest=self.digest,
            folder=root / self.digest,
            manifest=manifest,
            revision=self.revision,
            skipped=self.skipped,
        )


class WeightsCache:
    """Models in a folder that any number of processes share."""

    def __init__(
        self,
        models_dir: Path,
        config: WeightsConfig | None = None,
        *,
        clock: Clock | None = None,
        checkpoint_bytes: int = CHECKPOINT_BYTES,
    ) -> None:
        self.root = models_dir / "by-digest"
        self._fetching = self.root / "fetching"
        self._config = config or WeightsConfig()
        self._room = Room(self.root, self._fetching, self._config.limit_gb)
        self._clock = clock or SystemClock()
        self._checkpoint_bytes = checkpoint_bytes

    @asynccontextmanager
    async def opened(
        self, source: Source, *, digest: str = "", full: bool = False, on_progress: OnProgress = ignore
    ) -> AsyncIterator[Weights]:
        """The model, fetched if it is not there and mended if it is damaged. It is not evicted while it is open.

        ``digest`` is the version's; without one, whatever the source has now is right. The source of a digest that is
        here is not asked. ``full`` computes all digests again. Raises ``FetchFailed``.
        """
        weights, mark = await self._marked(source, digest, full, on_progress)
        try:
            yield weights
        finally:
            mark.close()

    async def held(self, source: Source, *, digest: str) -> HeldWeights:
        """As ``opened``, for a caller that lets go by itself."""
        return HeldWeights(*await self._marked(source, digest, False, ignore))

    async def _marked(
        self, source: Source, digest: str, full: bool, on_progress: OnProgress
    ) -> tuple[Weights, locks.UseMark]:
        """Opens a model, and the mark that keeps it from being evicted; whoever asks closes the mark."""
        if digest:
            check_digest(digest)
        with disk_errors(self.root):
            return await self._open(source, digest, full, on_progress)

    def kept(self) -> list[Kept]:
        """All models and unfinished fetches, with their sizes."""
        return self._room.kept()

    async def _open(
        self, source: Source, digest: str, full: bool, on_progress: OnProgress
    ) -> tuple[Weights, locks.UseMark]:
        for _ in range(_ROUNDS):
            found = _Fetched(digest)
            if not digest or self._manifest(digest) is None:
                found = await self._fetch(source, digest, on_progress)
            mark = locks.UseMark(self._lock(found.digest))
            try:
                manifest = self._manifest(found.digest)
                if manifest is not None:
                    await self._check(source, found.digest, manifest, full, on_progress)
                    return found.opened(self.root, manifest), mark
            except BaseException:
                mark.close()
                raise
            mark.close()  # evicted between the two
        raise FetchFailed(f"{source.location.text} is evicted as soon as it is fetched: raise weights.limit_gb.")

    async def _fetch(self, source: Source, digest: str, on_progress: OnProgress) -> "_Fetched":
        """Fetches the model unless another process has; returns its digest."""
        listing = await with_sums(source, await source.listing(), self._config.timeout_s)
        chosen = choose(listing.files, file=file_of(source.location), where=source.location.text)
        wanted = new_manifest(source.location.text, listing.revision, chosen.files)
        key = fetch_key(wanted)
        folder, found = self._fetching / key, self._fetching / f"{key}.found"
        self._fetching.mkdir(parents=True, exist_ok=True)
        async with self._turn(key, wanted.num_bytes, on_progress):
            known = digest or _read_word(found)
            if known and self._manifest(known) is not None:
                return _Fetched(known, listing.revision, chosen.skipped)
            manifest = await self._filled(source, folder, wanted, on_progress)
            if digest and manifest.digest != digest:
                shutil.rmtree(folder, ignore_errors=True)
                raise FetchFailed(
                    f"{source.location.text} has changed since the version was registered: its digest was "
                    f"{digest[:12]} and is {manifest.digest[:12]}. Register it as a new version, or restore the files.",
                    code="source_changed",
                )
            await self._put_in_place(folder, manifest)
            write_whole(found, manifest.digest.encode())
            return _Fetched(manifest.digest, listing.revision, chosen.skipped)

    async def _filled(self, source: Source, folder: Path, wanted: Manifest, on_progress: OnProgress) -> Manifest:
        """Fetches what the folder lacks; goes on with what an earlier fetch of the same files left there."""
        os.makedirs(folder, exist_ok=True)
        drop_drafts(folder)
        manifest = read_manifest(folder)
        if manifest is None or _bare(manifest) != _bare(wanted):
            manifest = wanted
        await THREADS.run(self._room.make, folder, manifest)
        meter = Meter(
            "fetching",
            done=manifest.num_verified,
            total=manifest.num_bytes,
            clock=self._clock,
            on_progress=on_progress,
        )
        return await Filling(source, folder, manifest, self._config, meter, checkpoint=self._checkpoint_bytes).run()

    async def _put_in_place(self, folder: Path, manifest: Manifest) -> None:
        """Renames the whole folder, and notes that its digests were computed while it was written."""
        target = self.root / manifest.digest
        await asyncio.sleep(2 * checking.CTIME_STEP_S)  # later writes get another ctime
        if self._manifest(manifest.digest) is not None:  # the same files from another source
            shutil.rmtree(folder, ignore_errors=True)
            return
        stamps = {entry.name: checking.stamp(folder / entry.name) for entry in manifest.files}
        shutil.rmtree(target, ignore_errors=True)
        locks.UseMark(self._lock(manifest.digest)).close()
        os.rename(folder, target)
        checking.note(self._record(manifest.digest), stamps, at=self._clock.now())

    async def _check(
        self, source: Source, digest: str, manifest: Manifest, full: bool, on_progress: OnProgress
    ) -> None:
        """Finds damaged files and fetches them again, one process at a time."""
        folder, record = self.root / digest, self._record(digest)
        if not full and checking.is_trusted(folder, manifest, record=record, config=self._config, clock=self._clock):
            return
        damaged = partial(checking.damaged, folder, manifest, record=record, config=self._config, clock=self._clock)
        if not os.access(self._fetching, os.W_OK):  # a read-only cache is checked, and cannot be mended
            if bad := await damaged(full=full, on_progress=on_progress):
                raise FetchFailed(f"{folder / bad[0].name} is damaged, and {folder} cannot be written to mend it.")
            return
        async with self._turn(digest, manifest.num_bytes, on_progress):
            if bad := await damaged(full=full, on_progress=on_progress):
                await self._mend(source, folder, manifest, bad, on_progress)
                bad = await damaged(full=True, on_progress=ignore)
            if bad:
                raise FetchFailed(f"{folder / bad[0].name} is damaged again: check the disk.", code="checksum_mismatch")

    async def _mend(
        self, source: Source, folder: Path, manifest: Manifest, bad: list[Entry], on_progress: OnProgress
    ) -> None:
        """Fetches damaged files again and renames them into place; whoever has the old ones mapped keeps those."""
        names = ", ".join(each.name for each in bad)
        draft = self._fetching / folder.name
        try:
            tags = {file.name: file.tag for file in (await source.listing()).files}
            entries = tuple(
                Entry(
                    name=each.name,
                    size=each.size,
                    tag=tags.get(each.name, ""),
                    check=Check(kind="sha256", value=each.sha256),
                )
                for each in bad
            )
            await self._filled(source, draft, replace(manifest, files=entries), on_progress)
        except AxonError as error:
            raise FetchFailed(
                f"{names} in {folder} is damaged and cannot be fetched again from {source.location.text}: "
                f"{error.message}",
                code=error.code,
            ) from error
        for each in bad:
            (folder / each.name).parent.mkdir(parents=True, exist_ok=True)
            (draft / each.name).replace(folder / each.name)
        shutil.rmtree(draft, ignore_errors=True)

    @asynccontextmanager
    async def _turn(self, key: str, total: int, on_progress: OnProgress) -> AsyncIterator[None]:
        """Holds the fetch of this key; meanwhile shows how far the process is that has it."""

        def follow() -> None:
            manifest = read_manifest(self._fetching / key)
            done = folder_bytes(self._fetching / key) if manifest else 0
            on_progress(Progress(stage="waiting", done_bytes=min(done, total), total_bytes=total))

        async with locks.turn(self._fetching / f"{key}.lock", follow):
            yield

    def _manifest(self, digest: str) -> Manifest | None:
        """The manifest of a model that is here; None where it is not that of its digest: then it is fetched again."""
        found = read_manifest(self.root / digest)
        return found if found is not None and found.is_whole and found.digest == digest else None

    def _lock(self, digest: str) -> Path:
        return self.root / f"{digest}.lock"

    def _record(self, digest: str) -> Path:
        return self.root / f"{digest}.checked"


def fetch_key(manifest: Manifest) -> str:
    """Names a fetch: processes with the same source, revision and files share it."""
    files = [f"{entry.name}\0{entry.size}\0{entry.tag}\n" for entry in manifest.files]
    text = "".join((manifest.source, "\0", manifest.revision, "\n", *files))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _bare(manifest: Manifest) -> Manifest:
    """The manifest as if nothing were fetched, to compare."""
    return replace(manifest, files=tuple(replace(entry, verified=0, sha256="") for entry in manifest.files))


def _read_word(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, ValueError):
        return ""
