"""The mark of a restore that is changing a data folder. While it is there, what the folder has may not fit together."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from axon.errors import Misconfigured
from axon.runtime.syncing import sync

_MARK = "restore-unfinished"


@contextmanager
def marked(folder: Path, what: str) -> Iterator[None]:
    """Puts the mark while the block runs; it stays if the block fails or the process is killed."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / _MARK
    path.write_text(f"{what}\n")
    sync(path)
    sync(folder)
    yield
    path.unlink()
    sync(folder)


def require_whole(folder: Path) -> None:
    """Raises ``Misconfigured`` if a restore into the folder was cut off."""
    path = folder / _MARK
    if path.exists():
        raise Misconfigured(
            f"A restore into {folder} was cut off while it replaced what was there ({path.read_text().strip()}). "
            f"Run `axon backup restore` again; to use what is there all the same, remove {path}."
        )
