"""A source on this machine: a folder of safetensors or a .gguf file. Follows no symbolic link."""

import os
import stat
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from axon.errors import FetchFailed, InvalidInput
from axon.runtime.clock import SystemClock
from axon.weights.listings import Listings
from axon.weights.names import is_module_config
from axon.weights.source import Listing, LocalPath, StatedFile
from axon.weights.threads import THREADS

if TYPE_CHECKING:
    from io import FileIO

_CHUNK_BYTES = 4 << 20
_PIPELINE = "model_index.json"
"""File that names the parts of a diffusion pipeline."""


class FolderSource:
    """Reads the files where they are."""

    def __init__(self, location: LocalPath) -> None:
        self._location = location
        self._folder = location.path.parent if location.path.suffix == ".gguf" else location.path

    @property
    def location(self) -> LocalPath:
        return self._location

    async def listing(self) -> Listing:
        return await _LISTINGS.listing(self._location.path, self._list)

    async def read(self, file: StatedFile, offset: int) -> AsyncGenerator[bytes, None]:
        with closing(_Reading(self._folder / file.name, file)) as reading:
            await THREADS.run_and_wait(reading.open, offset)
            while chunk := await THREADS.run_and_wait(reading.some):
                yield chunk

    async def aclose(self) -> None:
        """Nothing is open."""

    def _list(self) -> Listing:
        try:
            return self._checked(self._location.path)
        except OSError as error:
            raise _failed(self._location.path, error) from error

    def _checked(self, path: Path) -> Listing:
        if not path.exists():
            raise InvalidInput(_not_there(path), param="source")
        if path.suffix != ".gguf" and not path.is_dir():
            beside = f" Give the folder that it is in: {path.parent}." if path.suffix == ".safetensors" else ""
            raise InvalidInput(f"{path} is neither a folder nor a .gguf file.{beside}", param="source")
        if path.suffix == ".gguf" and path.is_dir():
            raise InvalidInput(f"{path} is a folder, not a .gguf file: give the file in it.", param="source")
        found = sorted(self._folder.iterdir())
        files = [self._stated(each) for each in found if not each.is_dir()]
        files += [self._stated(path) for each in found for path in _module_config(each)]
        if not any(each.name.endswith((".safetensors", ".gguf")) for each in files):
            _look_below(path, found)
        return Listing(files=tuple(files))

    def _stated(self, path: Path) -> StatedFile:
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            raise InvalidInput(
                f"{path} is a symbolic link, which is not followed: copy the folder with `cp -rL`, or name the "
                "repository or bucket itself."
            )
        if not stat.S_ISREG(found.st_mode):
            raise InvalidInput(f"{path} is no plain file.")
        name = path.relative_to(self._folder).as_posix()
        return StatedFile(name=name, size=found.st_size, tag=str(found.st_mtime_ns))


_LISTINGS = Listings(SystemClock())
os.register_at_fork(after_in_child=_LISTINGS.forget)


class _Reading:
    """A file that is read piece by piece. Its methods block."""

    def __init__(self, path: Path, stated: StatedFile) -> None:
        self._path, self._stated = path, stated
        self._file: FileIO | None = None

    def open(self, offset: int) -> None:
        """Opens the file; nobody waits for what has become a pipe meanwhile."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            raise _failed(self._path, error) from error
        self._file = os.fdopen(descriptor, "rb", buffering=0)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FetchFailed(f"{self._path} is no plain file any more.", code="source_changed")
        self._file.seek(offset)

    def some(self) -> bytes:
        """The next piece; empty at the end. Raises ``FetchFailed`` where the file is not the one that was stated."""
        assert self._file is not None
        chunk = self._file.read(_CHUNK_BYTES)
        if chunk and str(os.fstat(self._file.fileno()).st_mtime_ns) != self._stated.tag:
            raise FetchFailed(
                f"{self._path} has changed while it was read. Start again when nobody writes there.",
                code="source_changed",
            )
        return chunk

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _module_config(folder: Path) -> list[Path]:
    """The configuration in the folder of a sentence-transformers module; nothing for any other folder or a link."""
    path = folder / "config.json"
    is_one = is_module_config(f"{folder.name}/{path.name}") and not folder.is_symlink()
    return [path] if is_one and path.is_file() else []


def _look_below(path: Path, found: list[Path]) -> None:
    """Raises ``InvalidInput`` where the weights are one folder below, as those of a checkpoint of a training are, or
    in several, as those of a diffusion pipeline."""
    if any(each.name == _PIPELINE for each in found):
        raise InvalidInput(
            f"{path} is a diffusion pipeline ({_PIPELINE}), which makes no text, and no engine here runs it: give a "
            "language model.",
            param="source",
        )
    for each in found:
        if each.is_dir() and not each.is_symlink() and any(each.glob("*.safetensors")):
            raise InvalidInput(
                f"{path} has no model at its top, but {each} has weights: give that folder, if they are the model's.",
                param="source",
            )


def _not_there(path: Path) -> str:
    """Says that nothing is there; two words with a slash between them may have meant a hub."""
    written = "/".join(path.parts[-2:])
    return (
        f"There is no {path} on this machine. Give the path of a folder or a .gguf file that exists here; for a model "
        f"of a hub write hf://{written}."
    )


def _failed(path: Path, error: OSError) -> FetchFailed:
    return FetchFailed(f"{path} cannot be read: {error.strerror}.", code="source_unreadable")
