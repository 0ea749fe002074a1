"""The manifest of a model's files: size, digest and how much of each was verified. A JSON file beside them.

While a fetch runs it is the checkpoint that a later process goes on from; when all is there it states the digest.
"""

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from axon.weights.names import MANIFEST, refusal
from axon.weights.source import Check, StatedFile

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file of the manifest."""

    name: str
    size: int
    tag: str = ""
    check: Check | None = None
    """The checksum that the source states."""
    verified: int = 0
    """Bytes from the file's start that are on disk (synced) with the digest ``sha256``."""
    sha256: str = ""
    """SHA-256 of the verified bytes: of the whole file when all are."""

    @property
    def is_whole(self) -> bool:
        return self.verified == self.size and len(self.sha256) == 64

    @property
    def stated(self) -> StatedFile:
        return StatedFile(name=self.name, size=self.size, tag=self.tag, check=self.check)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The files of one model from one source."""

    format: int = FORMAT
    source: str
    revision: str = ""
    files: tuple[Entry, ...]

    @property
    def num_bytes(self) -> int:
        return sum(entry.size for entry in self.files)

    @property
    def num_verified(self) -> int:
        return sum(entry.verified for entry in self.files)

    @property
    def is_whole(self) -> bool:
        return all(entry.is_whole for entry in self.files)

    @property
    def digest(self) -> str:
        """SHA-256 over names, sizes and digests of all files, in the order of their names."""
        assert self.is_whole
        lines = sorted(f"{entry.name}\0{entry.size}\0{entry.sha256}\n" for entry in self.files)
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def with_entry(self, entry: Entry) -> "Manifest":
        """A copy with this entry in place of the one of its name."""
        return replace(self, files=tuple(entry if each.name == entry.name else each for each in self.files))


def new_manifest(source: str, revision: str, files: tuple[StatedFile, ...]) -> Manifest:
    """The manifest of a fetch that has nothing yet."""
    entries = (Entry(name=each.name, size=each.size, tag=each.tag, check=each.check) for each in files)
    return Manifest(source=source, revision=revision, files=tuple(sorted(entries, key=lambda entry: entry.name)))


def decode(data: bytes) -> Manifest:
    """Reads a manifest; raises ``ValueError`` for anything that no fetch could have written."""
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, RecursionError) as error:  # msgspec's validation error is one of them
        raise ValueError(f"no manifest: {error}") from error
    if manifest.format != FORMAT:
        raise ValueError(f"a manifest of format {manifest.format}")
    names = [entry.name for entry in manifest.files]
    if len(set(names)) != len(names) or any(map(refusal, names)):
        raise ValueError("a manifest with a name twice, or with one that is not allowed")
    if any(not 0 <= entry.verified <= entry.size for entry in manifest.files):
        raise ValueError("a manifest with a size that cannot be")
    return manifest


def encode(manifest: Manifest) -> bytes:
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"


def read_manifest(folder: Path) -> Manifest | None:
    """The folder's manifest; None where it has none that can be read."""
    try:
        return decode((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return None


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replaces the folder's manifest, atomically and synced to disk."""
    write_whole(folder / MANIFEST, encode(manifest))


def drop_drafts(folder: Path) -> None:
    """Removes drafts of the manifest that killed processes left; only for whoever alone writes here."""
    for draft in folder.glob(f".{MANIFEST}.*"):
        draft.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file atomically: synced beside its target, then renamed."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
