"""Where ``axon backup create`` writes: into a file, or into a folder under a name with the time in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from axon.errors import Misconfigured

STANDARD_OUTPUT = "-"


@contextmanager
def target_of(text: str) -> Iterator[Path]:
    """The file to write. What ends with a slash is a folder, and is made; it goes again if the block raises."""
    path = Path(text)
    if text == STANDARD_OUTPUT:
        yield path
    elif text.endswith("/") or path.is_dir():
        with _made(path):
            yield path / f"axon-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.backup"
    else:
        _check(path)
        yield path


def _check(path: Path) -> None:
    """A name without a suffix is more often meant as a folder, and a file of that name would stand in its way."""
    if not path.suffix and not path.exists():
        raise Misconfigured(
            f"There is no folder {path}: to make it, end it with a slash ({path}/); for a file, name {path}.backup."
        )
    if not path.parent.is_dir():
        raise Misconfigured(f"There is no folder {path.parent} for {path.name}: make it first.")


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    new = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        for each in reversed(new):
            each.mkdir(mode=0o700, exist_ok=True)
        if not folder.is_dir():
            raise Misconfigured(f"{folder} is a file, and the slash at its end says that it is a folder.")
    except OSError as error:
        raise Misconfigured(f"The folder {folder} cannot be made: {error.strerror}. Name another.") from None
    try:
        yield
    except BaseException:
        _remove_empty(new)
        raise


def _remove_empty(folders: list[Path]) -> None:
    for each in folders:
        try:
            each.rmdir()
        except OSError:
            return
