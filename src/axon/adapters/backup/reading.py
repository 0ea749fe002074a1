"""Reads a backup's archive, in the order in which it was written. Believes nothing that its digests do not confirm."""

import hashlib
import re
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from axon.adapters.backup.rows import KINDS
from axon.adapters.backup.writing import MANIFEST, MANIFEST_SUM, SECRETS
from axon.domain import backup as manifests
from axon.domain.backup import Manifest, Part
from axon.errors import InvalidInput, Misconfigured

_NAME = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII)
_LONGEST_PART = 1 << 31
"""Bytes of the longest member that is read into memory."""


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
                self._refuse(f"{stored.name} is damaged")
        if len(manifest.parts) != len(found):
            self._refuse(f"it has {len(found)} parts, and its manifest names {len(manifest.parts)}")
        self._check_names(manifest)
        return manifest

    def _check_names(self, manifest: Manifest) -> None:
        """Names of tables and columns become part of statements: whoever wrote the archive may not choose them."""
        for table in manifest.tables:
            for name in (table.name, *(column.name for column in table.columns)):
                if not _NAME.fullmatch(name):
                    self._refuse(f"{name!r} is no name of a table or a column")
            for column in table.columns:
                if column.kind not in KINDS:
                    self._refuse(f"{column.kind!r} is no kind of a column")
        if sum(part.name.startswith(f"{SECRETS}/") for part in manifest.parts) > 1:
            self._refuse("it has more than one secret")

    def members(self, manifest: Manifest, folder: str) -> Iterator[tuple[str, bytes]]:
        """The names below a folder and the bytes of those members, compared with their digests once more: the file may
        have changed since it was checked."""
        sums = {part.name: part.sha256 for part in manifest.parts if part.name.startswith(f"{folder}/")}
        for name, data in self._all(wanted=sums) if sums else ():
            if hashlib.sha256(data).hexdigest() != sums.pop(name, ""):
                self._refuse(f"{name} is damaged")
            yield name.removeprefix(f"{folder}/"), data
        if sums:
            self._refuse(f"{min(sums)} is missing")

    def _all(self, wanted: dict[str, str] | None = None) -> Iterator[tuple[str, bytes]]:
        with self._opened() as tar:
            while (member := self._next(tar)) is not None:
                tar.members = []  # type: ignore[attr-defined]  # tarfile would keep every header
                if wanted is not None and member.name not in wanted:
                    continue
                if not member.isreg() or member.size > _LONGEST_PART:
                    self._refuse(f"{member.name!r} is no part of a backup")
                yield member.name, self._read(tar, member)

    @contextmanager
    def _opened(self) -> Iterator[tarfile.TarFile]:
        try:
            file = self._path.open("rb")
        except OSError as error:
            raise Misconfigured(f"{self._path} cannot be read: {error.strerror}. Name a backup's file.") from None
        with file:
            try:
                tar = tarfile.open(fileobj=file, mode="r:")  # noqa: SIM115 - closed below
            except tarfile.TarError:
                self._refuse("it is no archive of `axon backup create`, or it is encrypted")
            with tar:
                yield tar

    def _next(self, tar: tarfile.TarFile) -> tarfile.TarInfo | None:
        try:
            return tar.next()
        except (tarfile.TarError, OSError) as error:
            self._refuse(str(error))

    def _read(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
        try:
            reader = tar.extractfile(member)
            data = reader.read() if reader is not None else b""
        except (tarfile.TarError, OSError) as error:
            self._refuse(str(error))
        if len(data) != member.size:
            self._refuse("it is cut off")
        return data

    def _refuse(self, why: str) -> NoReturn:
        raise InvalidInput(f"The backup {self._path} cannot be used: {why}. Use another backup.")
