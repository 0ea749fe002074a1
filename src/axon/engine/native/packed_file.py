"""One file of named arrays, written atomically, memory-mapped, and guarded against damage. Knows no model.

The arrays come first, then a JSON trailer, which says what they were made of and where each lies, then a fixed tail.
The modification time is set to the one that the trailer names. A file that still has it has not been written to since,
and is mapped without being read; for any other, such as a copy, the checksums of all its bytes are compared first.
"""

import json
import mmap
import os
import struct
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from axon.runtime.cores import usable_cores

Array = npt.NDArray[Any]

_ALIGNMENT = 64
_CHUNK_BYTES = 16 << 20
"""Bytes under one checksum: threads compare several at once."""
_TAIL = struct.Struct("<QI8s")
"""Length of the trailer, its CRC-32, and the magic bytes."""
_MAGIC = b"axonPKD1"


class PackedFile:
    """The arrays of a mapped file by name, never copied."""

    def __init__(self, data: mmap.mmap, pieces: dict[str, Any]) -> None:
        self._data = data
        self._pieces = pieces

    def __contains__(self, name: str) -> bool:
        return name in self._pieces

    def __getitem__(self, name: str) -> Array:
        offset, shape, dtype = self._pieces[name]
        count = int(np.prod(shape))
        return np.frombuffer(self._data, dtype=dtype, count=count, offset=offset).reshape(shape)


def open_file(path: Path, source: str) -> PackedFile | None:
    """Maps the file; None if it is missing, damaged, or was made of something else than ``source``."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            trailer = _read_trailer(data)
            if trailer is None or trailer["source"] != source:
                return None
            if status.st_mtime_ns != trailer["written_ns"]:
                if _checksums(data, trailer["num_bytes"]) != trailer["checksums"]:
                    return None
                with suppress(OSError):  # a read-only file is compared at each start
                    os.utime(file.fileno(), ns=(status.st_atime_ns, trailer["written_ns"]))
            if hasattr(os, "posix_fadvise"):
                _read_ahead(os.dup(file.fileno()), trailer["num_bytes"])
            return PackedFile(data, trailer["pieces"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_file(path: Path, source: str, pieces: Iterator[tuple[str, Array]]) -> PackedFile:
    """Writes the arrays to a temporary file, maps it, and puts it in the place of ``path`` (an atomic rename).

    A reader finds a whole file or none, and of several writers each maps its own.
    """
    places: dict[str, tuple[int, tuple[int, ...], str]] = {}
    with _replacing(path) as file:
        for name, array in pieces:
            file.write(b"\0" * (-file.tell() % _ALIGNMENT))
            places[name] = (file.tell(), array.shape, array.dtype.str)
            file.write(array.data)
        num_bytes = file.tell()
        file.flush()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            checksums = _checksums(data, num_bytes)
        written_ns = time.time_ns()
        trailer = json.dumps(
            {
                "source": source,
                "num_bytes": num_bytes,
                "checksums": checksums,
                "written_ns": written_ns,
                "pieces": places,
            }
        ).encode()
        file.write(trailer + _TAIL.pack(len(trailer), zlib.crc32(trailer), _MAGIC))
        file.flush()
        os.fsync(file.fileno())
        os.utime(file.fileno(), ns=(written_ns, written_ns))
        written = open_file(Path(file.name), source)
        if written is None:
            raise OSError(f"{path} was damaged while it was written")
    return written


def _read_trailer(data: mmap.mmap) -> dict[str, Any] | None:
    if len(data) < _TAIL.size:
        return None
    length, checksum, magic = _TAIL.unpack(data[-_TAIL.size :])
    start = len(data) - _TAIL.size - length
    if magic != _MAGIC or start < 0:
        return None
    text = data[start : start + length]
    if zlib.crc32(text) != checksum:
        return None
    trailer: dict[str, Any] = json.loads(text)
    return trailer if trailer["num_bytes"] == start else None


def _checksums(data: mmap.mmap, num_bytes: int) -> list[int]:
    with memoryview(data) as view, ThreadPoolExecutor(usable_cores()) as pool:
        starts = range(0, num_bytes, _CHUNK_BYTES)
        return list(pool.map(lambda start: zlib.crc32(view[start : min(num_bytes, start + _CHUNK_BYTES)]), starts))


def _read_ahead(descriptor: int, num_bytes: int) -> None:
    """Has the system read the file into its page cache meanwhile, where it is not there; closes the descriptor."""

    def advise() -> None:
        try:
            for start in range(0, num_bytes, _CHUNK_BYTES):
                os.posix_fadvise(descriptor, start, _CHUNK_BYTES, os.POSIX_FADV_WILLNEED)
        except OSError:
            pass  # page faults read it as well, only later
        finally:
            os.close(descriptor)

    threading.Thread(target=advise, name="axon-read-ahead", daemon=True).start()


@contextmanager
def _replacing(path: Path) -> Iterator[Any]:
    """A temporary file that replaces ``path`` atomically when it is whole; removed if it does not become so."""
    with tempfile.NamedTemporaryFile(mode="w+b", dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
        try:
            yield file
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
