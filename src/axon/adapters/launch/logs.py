"""Log files of replicas: bounded, and read for the last line. A replica appends to its file for as long as it runs."""

import os
import shutil
from pathlib import Path

MOST_BYTES = 8 << 20
"""A file that has grown beyond this is kept as ``.1``, and the replica goes on in an empty one."""
_TAIL_BYTES = 4096
_LINE_CHARS = 300


def rotate(path: Path, most_bytes: int = MOST_BYTES) -> None:
    """Copies a file that is too large aside and empties it. It keeps its inode, which the replica has open for
    appending; what the replica writes between the two steps is lost."""
    try:
        if path.stat().st_size <= most_bytes:
            return
    except FileNotFoundError:
        return
    shutil.copyfile(path, path.with_name(path.name + ".1"))
    os.truncate(path, 0)


def last_line(path: Path) -> str:
    """The last line that is not empty, shortened; empty if there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        return ""
    return next((line.strip()[:_LINE_CHARS] for line in reversed(lines) if line.strip()), "")
