"""Looks at an archive's headers and manifest, to tell quickly whether it is one. Compares no digest of its parts."""

import hashlib
import tarfile
from pathlib import Path

from axon.adapters.backup.writing import MANIFEST, MANIFEST_SUM
from axon.domain import backup as manifests
from axon.errors import InvalidInput, Misconfigured

_LONGEST_MANIFEST = 1 << 28
"""Bytes of a manifest that is read into memory."""


def require_archive(path: Path) -> None:
    """Raises ``InvalidInput`` for a file that is no archive or whose end is missing, and ``Misconfigured`` for one that
    cannot be read."""
    try:
        with path.open("rb") as file, tarfile.open(fileobj=file, mode="r:") as tar:
            found = _last_members(tar)
    except OSError as error:
        raise Misconfigured(f"{path} cannot be read: {error.strerror}. Name a backup's file.") from None
    except (tarfile.TarError, ValueError, EOFError):
        raise _refusal(path, "it is no archive of `axon backup create`, or it is encrypted") from None
    if MANIFEST not in found or MANIFEST_SUM not in found:
        raise _refusal(path, "it has no end: the backup was cut off, or a part of it is damaged")
    if hashlib.sha256(found[MANIFEST]).hexdigest().encode() != found[MANIFEST_SUM].strip():
        raise _refusal(path, "its manifest is damaged")
    manifests.decode(found[MANIFEST])


def _last_members(tar: tarfile.TarFile) -> dict[str, bytes]:
    """The manifest and its digest, as far as they are there; the file may end before."""
    found = {}
    try:
        while (member := tar.next()) is not None:
            tar.members = []  # type: ignore[attr-defined]  # tarfile would keep every header
            if member.name in (MANIFEST, MANIFEST_SUM) and member.isreg() and member.size <= _LONGEST_MANIFEST:
                reader = tar.extractfile(member)
                found[member.name] = reader.read() if reader is not None else b""
    except tarfile.ReadError:
        return {}
    return found


def _refusal(path: Path, why: str) -> InvalidInput:
    return InvalidInput(f"{path} is not sent: {why}. Name a whole backup.")
