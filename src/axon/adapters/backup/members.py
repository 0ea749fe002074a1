"""The members of an archive, one after the other: plain files with a name, as ``ArchiveWriter`` writes them. Knows no
manifest.

Python's ``tarfile`` also reads links, sparse files and headers that change other headers; whoever makes an archive can
have it recurse, or give gigabytes for a few bytes. None of that is in a backup, so none of it is read.
"""

import os
import stat
import tarfile
from collections.abc import Container, Iterator
from pathlib import Path
from typing import BinaryIO

from axon.adapters.backup.rows import MOST_PART_BYTES

_BLOCK = tarfile.BLOCKSIZE
_PLAIN = (tarfile.REGTYPE, tarfile.AREGTYPE)


class Damaged(Exception):
    """What is wrong with an archive, as the end of a sentence."""


def opened(path: Path) -> BinaryIO:
    """The file, if it is a regular one; raises ``OSError``. Waits for nobody: a pipe may have no writer."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(0, "it is no regular file")
    return os.fdopen(file, "rb")


def members_of(file: BinaryIO, wanted: Container[str] | None = None) -> Iterator[tuple[str, bytes]]:
    """Names and bytes of the members, or of those that are wanted; raises ``Damaged``. Nothing is read before its size
    is found to be one of a part, and within the file."""
    end, is_first = os.fstat(file.fileno()).st_size, True
    while (header := _header(file, is_first=is_first)) is not None:
        is_first, at = False, file.tell()
        if header.type not in _PLAIN or not 0 <= header.size <= MOST_PART_BYTES:
            raise Damaged(f"{header.name!r} is no part of a backup")
        if at + header.size > end:
            raise Damaged("it is cut off")
        if wanted is None or header.name in wanted:
            yield header.name, file.read(header.size)
        file.seek(at + header.size + -header.size % _BLOCK)


def _header(file: BinaryIO, *, is_first: bool) -> tarfile.TarInfo | None:
    """The header of the next member, with its whole name; None at the end."""
    header = _block(file, is_first=is_first)
    if header is None or header.type != tarfile.GNUTYPE_LONGNAME:
        return header
    name = file.read(_BLOCK) if 0 < header.size <= _BLOCK else b""  # no name of a part is longer
    if len(name) < _BLOCK:
        raise Damaged("it has a name that is no part's")
    header = _block(file, is_first=False)
    if header is None:
        raise Damaged("it is cut off")
    header.name = name.partition(b"\0")[0].decode("utf-8", "surrogateescape")
    return header


def _block(file: BinaryIO, *, is_first: bool) -> tarfile.TarInfo | None:
    try:
        return tarfile.TarInfo.frombuf(file.read(_BLOCK), "utf-8", "surrogateescape")
    except (tarfile.EmptyHeaderError, tarfile.EOFHeaderError):  # type: ignore[attr-defined]
        return None
    except (tarfile.HeaderError, ValueError) as error:
        what = "it is no archive of `axon backup create`, or it is encrypted" if is_first else f"{error}"
        raise Damaged(what) from None
