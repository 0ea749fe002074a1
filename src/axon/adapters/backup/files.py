"""The bytes of uploaded files in a backup: read from and written to the folder that gateways keep them in.

A file's bytes are there before the store knows it, so whatever the snapshot names is there, unless it was deleted
since.
"""

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from axon.adapters.backup.naming import FILES, is_file_part
from axon.adapters.backup.reading import Archive
from axon.adapters.backup.writing import ArchiveWriter
from axon.adapters.files.names import checked
from axon.domain.backup import FilesFacts, Manifest
from axon.errors import InvalidInput
from axon.runtime.syncing import sync

_PART_BYTES = 4 << 20


def back_up(writer: ArchiveWriter, folder: Path, ids: Iterable[str]) -> FilesFacts:
    """Writes the bytes of these files into the archive."""
    num_files = num_bytes = 0
    missing: list[str] = []
    for file_id in ids:
        try:
            with (folder / "whole" / checked(file_id)).open("rb") as file:
                for number, piece in enumerate(iter(lambda: file.read(_PART_BYTES), b"")):
                    writer.add(f"{FILES}/{file_id}/{number:06d}", piece)
                    num_bytes += len(piece)
                if not file.tell():
                    writer.add(f"{FILES}/{file_id}/000000", b"")
            num_files += 1
        except FileNotFoundError:
            missing.append(file_id)
    return FilesFacts(included=True, num_files=num_files, num_bytes=num_bytes, missing=tuple(missing))


def restore(archive: Archive, manifest: Manifest, folder: Path) -> None:
    """Writes the bytes into the folder, each file whole or not at all."""
    whole, partial = folder / "whole", folder / "partial"
    for each in (whole, partial):
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
    file_id, draft = "", partial / f"restore-{secrets.token_hex(8)}"
    try:
        for name, piece in archive.members(manifest, FILES):
            own, _, _ = name.partition("/")
            if not is_file_part(name):  # once more: the archive may be another file by now
                raise InvalidInput(f"The backup has a file of the name {name!r}, which is none of Axon's.")
            if own != file_id:
                _commit(draft, whole, file_id)
                file_id = own
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
                file.write(piece)
        _commit(draft, whole, file_id)
    finally:
        draft.unlink(missing_ok=True)
    sync(whole)


def _commit(draft: Path, whole: Path, file_id: str) -> None:
    if not file_id:
        return
    sync(draft)
    os.replace(draft, whole / file_id)
