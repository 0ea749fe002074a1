"""Reads a backup's archive, in the order in which it was written. Believes nothing that its digests do not confirm."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from axon.adapters.backup.members import Damaged, members_of, opened
from axon.adapters.backup.naming import faults
from axon.adapters.backup.writing import MANIFEST, MANIFEST_SUM
from axon.domain import backup as manifests
from axon.domain.backup import Manifest, Part
from axon.errors import InvalidInput, Misconfigured


class Archive:
    """An archive file. ``check`` reads all of it; ``members`` gives what one has to restore, part by part."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def check(self) -> Manifest:
        """Reads the whole file and compares every digest; raises ``InvalidInput`` for one that is not as it was
        written."""
        found: list[Part] = []
        text, stated = b"", b""
        for name, data in self._all():
            if name == MANIFEST:
                text = data
            elif name == MANIFEST_SUM:
                stated = data
            else:
                found.append(Part(name=name, num_bytes=len(data), sha256=hashlib.sha256(data).hexdigest()))
        if not stated:
            self._refuse("it has no end: the backup was cut off, or a part of it is damaged")
        if hashlib.sha256(text).hexdigest() != stated.decode("ascii", "replace").strip():
            self._refuse("its manifest is damaged")
        manifest = manifests.decode(text)
        for stored, seen in zip(manifest.parts, found, strict=False):
            if stored != seen:
                self._refuse(f"{stored.name!r} is damaged")
        if len(manifest.parts) != len(found):
            self._refuse(f"it has {len(found)} parts, and its manifest names {len(manifest.parts)}")
        for fault in faults(manifest):
            self._refuse(fault)
        return manifest

    def members(self, manifest: Manifest, folder: str) -> Iterator[tuple[str, bytes]]:
        """The names below a folder and the bytes of those members, compared with their digests once more: the file may
        have changed since it was checked."""
        sums = {part.name: part.sha256 for part in manifest.parts if part.name.startswith(f"{folder}/")}
        for name, data in self._all(wanted=sums) if sums else ():
            if hashlib.sha256(data).hexdigest() != sums.pop(name, ""):
                self._refuse(f"{name!r} is damaged")
            yield name.removeprefix(f"{folder}/"), data
        if sums:
            self._refuse(f"{min(sums)!r} is missing")

    def _all(self, wanted: dict[str, str] | None = None) -> Iterator[tuple[str, bytes]]:
        try:
            with opened(self._path) as file:
                yield from members_of(file, wanted)
        except OSError as error:
            raise Misconfigured(f"{self._path} cannot be read: {error.strerror}. Name a backup's file.") from None
        except Damaged as error:
            self._refuse(str(error))

    def _refuse(self, why: str) -> NoReturn:
        raise InvalidInput(f"The backup {self._path} cannot be used: {why}. Use another backup.")
