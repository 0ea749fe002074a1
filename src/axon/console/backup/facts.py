"""A backup's manifest in words and in JSON. Prints nothing."""

from typing import TYPE_CHECKING, Any

from axon.console.administration import moment

if TYPE_CHECKING:
    from axon.domain.backup import Manifest


def sentences_of(manifest: "Manifest", begin: str) -> list[str]:
    """What is in a backup, in sentences of which the first begins so."""
    files = manifest.files
    told = [
        f"{begin} {counted(manifest.num_rows, 'row')} and {counted(files.num_files, 'file')} of "
        f"{moment(manifest.created_at)}, {bytes_text(manifest.num_bytes)}, from {manifest.database} at migration "
        f"{manifest.revision}."
    ]
    if not files.included:
        told.append(f"Files' bytes are not in it: {files.note}.")
    if files.missing:
        verb = "was" if len(files.missing) == 1 else "were"
        told.append(f"The bytes of {counted(len(files.missing), 'file')} {verb} gone; `--json` tells which.")
    return told


def facts_of(manifest: "Manifest") -> dict[str, Any]:
    """The manifest without digests, of which that of the pepper's member is nobody's business."""
    files, pepper = manifest.files, manifest.pepper
    return {
        "format": manifest.format,
        "axon": manifest.axon,
        "database": manifest.database,
        "migration": manifest.revision,
        "created_at": manifest.created_at,
        "bytes": manifest.num_bytes,
        "rows": {table.name: table.num_rows for table in manifest.tables},
        "unfinished": manifest.num_unfinished,
        "files": {"included": files.included, "count": files.num_files, "missing": list(files.missing)},
        "pepper": pepper is not None and pepper.included,
        "not_included": list(manifest.not_included),
    }


def counted(number: int, noun: str) -> str:
    """A number and its noun, which gets an s unless it is one."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def bytes_text(num_bytes: int) -> str:
    """Bytes in MB, and in kB below a megabyte."""
    return f"{num_bytes / 1e6:,.1f} MB" if num_bytes >= 1e6 else f"{num_bytes / 1e3:,.1f} kB"
