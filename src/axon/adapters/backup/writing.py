"""Writes a backup's archive: a tar file whose last members are the manifest and its digest. Knows no database.

The file has another name until it is whole and synced, so that a process that is killed leaves no file that looks like
a backup. Everything is written in parts of a bounded size, as they come.
"""

import contextlib
import hashlib
import os
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from axon.domain import backup as manifests
from axon.domain.backup import Manifest, Part
from axon.errors import Misconfigured
from axon.runtime.failpoints import failpoint
from axon.runtime.syncing import sync

MANIFEST, MANIFEST_SUM = "manifest.json", "manifest.sha256"
SECRETS = "secrets"
"""Folder of the archive with the pepper, if it is in it."""
PEPPER = f"{SECRETS}/pepper"
STANDARD_OUTPUT = Path("-")
_PARTIAL = ".partial"


class ArchiveWriter:
    """Adds members to an archive and remembers their digests."""

    def __init__(self, file: IO[bytes], *, at: float) -> None:
        self._file, self._at = file, int(at)
        self.parts: list[Part] = []

    def add(self, name: str, data: bytes) -> None:
        """Writes one member, which only its owner may read once it is extracted."""
        self._put(name, data)
        self.parts.append(Part(name=name, num_bytes=len(data), sha256=hashlib.sha256(data).hexdigest()))
        failpoint("backup.part")

    def finish(self, manifest: Manifest) -> None:
        """Writes the manifest, without which the archive is none."""
        text = manifests.encode(manifest)
        self._put(MANIFEST, text)
        self._put(MANIFEST_SUM, hashlib.sha256(text).hexdigest().encode() + b"\n")
        self._file.write(bytes(2 * tarfile.BLOCKSIZE))

    def _put(self, name: str, data: bytes) -> None:
        member = tarfile.TarInfo(name)
        member.size, member.mode, member.mtime = len(data), 0o600, self._at
        self._file.write(member.tobuf(tarfile.GNU_FORMAT))
        self._file.write(data)
        self._file.write(bytes(-len(data) % tarfile.BLOCKSIZE))


@contextmanager
def new_archive(path: Path) -> Iterator[IO[bytes]]:
    """A file that gets its name when the block has ended well; ``-`` is the standard output."""
    if path == STANDARD_OUTPUT:
        yield cast("IO[bytes]", sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    if path.exists():
        raise _exists_already(path)
    draft = path.with_name(path.name + _PARTIAL)
    with contextlib.suppress(FileNotFoundError):
        draft.unlink()  # of a backup that was killed
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        failpoint("backup.written")
        os.link(draft, path)  # unlike a rename, this never replaces a file
        sync(path.parent)
    except FileExistsError:
        raise _exists_already(path) from None
    finally:
        draft.unlink(missing_ok=True)


def _exists_already(path: Path) -> Misconfigured:
    return Misconfigured(f"{path} exists already, and a backup never replaces a file. Name another.")
