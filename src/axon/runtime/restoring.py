"""The mark of a restore that is changing a data folder. While it is there, what the folder has may not fit together."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from axon.errors import Misconfigured

_MARK = "restore-unfinished"


@contextmanager
def marked(folder: Path, what: str) -> Iterator[None]:
    """Puts the mark while the block runs; it stays if the block fails or the process is killed."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / _MARK
    with path.open("w") as file:
        file.write(f"{what}\n")
        file.flush()
        os.fsync(file.fileno())
    _sync(folder)
    yield
    path.unlink()
    _sync(folder)


def require_whole(folder: Path) -> None:
    """Raises ``Misconfigured`` if a restore into the folder was cut off."""
    path = folder / _MARK
    if path.exists():
        raise Misconfigured(
            f"A restore into {folder} was cut off while it replaced what was there ({path.read_text().strip()}). "
            f"Run `axon backup restore` again; to use what is there all the same, remove {path}."
        )


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
