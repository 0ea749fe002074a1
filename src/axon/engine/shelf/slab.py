"""Two files that keep KV blocks: an index of small records, and the blocks' bytes. Knows no threads and no shelf.

A record says which block stands in its place, and has a checksum of the block and one of itself. So a write that was
cut short, a place that another block has overwritten since, and bytes that have changed are all found out when they are
read, and nothing has to be synced. An index of another model, block or format is thrown away with its blocks.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from axon.engine.schedule.shelf_files import Place

INDEX, BLOCKS = "index", "blocks"
FINGERPRINT_BYTES = 32
_MAGIC = b"axonKVS1"
_PAGE = 4096
_HEADER = struct.Struct("<8s32sQ")
_RECORD = struct.Struct("<16s16sd?I")
_CHECKSUM = struct.Struct("<I")
_RECORD_BYTES = 64
_NOTHING = bytes(_RECORD_BYTES)


class Slab:
    """Places 0 … num_places-1 in a folder."""

    def __init__(self, folder: Path, *, fingerprint: bytes, block_bytes: int, num_places: int) -> None:
        """Opens the files, or makes them; raises ``OSError`` if the folder cannot be written."""
        assert len(fingerprint) == FINGERPRINT_BYTES
        self.num_places, self.block_bytes = num_places, block_bytes
        self._stride = -(-block_bytes // _PAGE) * _PAGE
        self._checksums: dict[int, int] = {}
        self._index = os.open(folder / INDEX, os.O_RDWR | os.O_CREAT, 0o600)
        self._blocks = os.open(folder / BLOCKS, os.O_RDWR | os.O_CREAT, 0o600)
        header = _HEADER.pack(_MAGIC, fingerprint, block_bytes)
        if os.pread(self._index, _HEADER.size, 0) != header:
            os.ftruncate(self._index, 0)
            os.ftruncate(self._blocks, 0)
            os.pwrite(self._index, header, 0)
        _cut(self._index, (1 + num_places) * _RECORD_BYTES)
        _cut(self._blocks, num_places * self._stride)

    def contents(self) -> Iterator[Place]:
        """The places whose records are whole; of their blocks nothing is read."""
        records = os.pread(self._index, self.num_places * _RECORD_BYTES, _RECORD_BYTES)
        for number, first in enumerate(range(0, len(records), _RECORD_BYTES)):
            body = records[first : first + _RECORD.size]
            checksum = records[first + _RECORD.size : first + _RECORD.size + _CHECKSUM.size]
            if not any(body) or _CHECKSUM.pack(zlib.crc32(body)) != checksum:
                continue
            key, tag, at, has_tag, block_checksum = _RECORD.unpack(body)
            self._checksums[number] = block_checksum
            yield Place(number, key, tag if has_tag else b"", at)

    def write(self, place: Place, block: memoryview) -> None:
        """Writes a block and then its record; raises ``OSError``, for one where the disk is full."""
        checksum = zlib.crc32(block, zlib.crc32(place.key))
        _write_all(self._blocks, block, place.number * self._stride)
        body = _RECORD.pack(place.key, place.tag, place.at, bool(place.tag), checksum)
        self._write_record(place.number, body + _CHECKSUM.pack(zlib.crc32(body)))
        self._checksums[place.number] = checksum

    def read(self, place: Place, into: memoryview) -> bool:
        """Reads a block; False if the place does not hold this one, whole."""
        offset, num_read = place.number * self._stride, 0
        while num_read < self.block_bytes:
            count = os.preadv(self._blocks, [into[num_read:]], offset + num_read)
            if not count:
                return False
            num_read += count
        return zlib.crc32(into, zlib.crc32(place.key)) == self._checksums.get(place.number)

    def expect(self, number: int) -> None:
        """Has the system fetch a block that will be read."""
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._blocks, number * self._stride, self.block_bytes, os.POSIX_FADV_WILLNEED)

    def erase(self, number: int) -> None:
        """Overwrites a record and its block with zeros."""
        self._checksums.pop(number, None)
        self._write_record(number, _NOTHING)
        if os.fstat(self._blocks).st_size > number * self._stride:
            _write_all(self._blocks, memoryview(bytes(self.block_bytes)), number * self._stride)

    def close(self) -> None:
        """Closes the files."""
        os.close(self._index)
        os.close(self._blocks)

    def _write_record(self, number: int, record: bytes) -> None:
        os.pwrite(self._index, record, (1 + number) * _RECORD_BYTES)


def _cut(descriptor: int, num_bytes: int) -> None:
    if os.fstat(descriptor).st_size > num_bytes:
        os.ftruncate(descriptor, num_bytes)


def _write_all(descriptor: int, data: memoryview, offset: int) -> None:
    while data:
        count = os.pwrite(descriptor, data, offset)
        data, offset = data[count:], offset + count
