"""Rows of a table as bytes, in parts of a bounded size: a length in four bytes, then a msgpack array. Knows no file."""

import gzip
import hashlib
import io
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from sqlalchemy import BigInteger, Boolean, Double, LargeBinary, Numeric, Text
from sqlalchemy.types import Float, Integer, TypeEngine

from axon.errors import InvalidInput, Misconfigured

PART_BYTES = 4 << 20
"""Bytes of encoded rows after which a part is closed; one longer row is a part by itself."""
KINDS: dict[str, TypeEngine[Any]] = {
    "bool": Boolean(),
    "bytes": LargeBinary(),
    "int": BigInteger(),
    "float": Double(),
    "text": Text(),
}
"""The kinds of columns, with the types that read and write them on both databases."""
MOST_ROW_BYTES = 256 << 20
"""Bytes of the longest row that a backup may have; a request may have ``gateway.max_body_bytes``, usually 4 MiB."""
MOST_PART_BYTES = MOST_ROW_BYTES + 4 * PART_BYTES
"""Bytes of the longest part, as it is in the archive and decompressed; nothing longer is read."""
Row = Sequence[Any]
_VALUES = frozenset({bool, int, float, str, bytes, type(None)})
_LENGTH = struct.Struct(">I")
_MODULUS = 1 << 256


def kind_of(type_: TypeEngine[Any]) -> str:
    """The kind of a column's type, as the database reports it."""
    if isinstance(type_, Boolean):
        return "bool"
    if isinstance(type_, LargeBinary):
        return "bytes"
    if isinstance(type_, Integer):
        return "int"
    if isinstance(type_, (Float, Numeric)):
        return "float"
    return "text"


class RowSum:
    """Number of rows and the sum of their digests."""

    def __init__(self) -> None:
        self.num_rows = 0
        self._sum = 0

    def add(self, row: bytes) -> None:
        self.num_rows += 1
        self._sum = (self._sum + int.from_bytes(hashlib.sha256(row).digest(), "big")) % _MODULUS

    @property
    def digest(self) -> str:
        return f"{self._sum:064x}"


def encode_row(row: Row) -> bytes:
    return msgspec.msgpack.encode(list(row))


def packed(rows: Iterable[Row], total: RowSum) -> Iterator[bytes]:
    """Compressed parts of the rows; ``total`` adds up what has passed."""
    gathered: list[bytes] = []
    num_bytes = 0
    for row in rows:
        encoded = encode_row(row)
        if len(encoded) > MOST_ROW_BYTES:
            raise Misconfigured(f"A row has {len(encoded):,} bytes. A backup takes at most {MOST_ROW_BYTES:,}.")
        total.add(encoded)
        gathered += _LENGTH.pack(len(encoded)), encoded
        num_bytes += len(encoded)
        if num_bytes >= PART_BYTES:
            yield _compressed(gathered)
            gathered, num_bytes = [], 0
    if gathered:
        yield _compressed(gathered)


def unpacked(part: bytes, *, num_columns: int) -> Iterator[Row]:
    """The rows of one part, decompressed a row at a time; raises ``InvalidInput`` if it is damaged or too long."""
    room = MOST_PART_BYTES
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(part)) as data:
            while head := data.read(_LENGTH.size):
                (length,) = _LENGTH.unpack(head)
                room -= len(head) + length
                if room < 0:
                    raise ValueError("it is longer than any")
                yield _row(data.read(length), length, num_columns)
    except (OSError, EOFError, zlib.error, struct.error, msgspec.DecodeError, ValueError) as error:
        raise InvalidInput(f"A part of the backup cannot be read: {error}. Use another backup.") from None


def _row(encoded: bytes, length: int, num_columns: int) -> Row:
    if len(encoded) != length:
        raise ValueError("it is cut off")
    try:
        row: list[Any] = msgspec.msgpack.decode(encoded, type=list)
    except RecursionError:
        raise ValueError("a row is nested too deeply") from None
    if len(row) != num_columns or not _VALUES.issuperset(map(type, row)):
        raise ValueError("a row has other columns than its table")
    return row


def _compressed(pieces: Sequence[bytes]) -> bytes:
    return gzip.compress(b"".join(pieces), compresslevel=1, mtime=0)
