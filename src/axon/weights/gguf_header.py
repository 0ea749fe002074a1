"""How long the header of a GGUF file is: metadata and the tensors' descriptions, not the tensors. Reads no values."""

import struct

_NUMBER_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_STRING, _ARRAY = 8, 9
_MAX_DIMS = 8
_MAX_DEPTH = 4


class _TooShort(Exception):
    """More bytes are needed."""


def header_bytes(data: bytes) -> int | None:
    """The header's length, None where ``data`` ends before it; raises ``ValueError`` for another kind of file."""
    try:
        return _Scan(data).header()
    except _TooShort:
        return None


class _Scan:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def header(self) -> int:
        if self._take(4) != b"GGUF":
            raise ValueError("it does not begin as a GGUF file does")
        if (version := self._u32()) not in (2, 3):
            raise ValueError(f"GGUF version {version} is not read")
        num_tensors, num_values = self._u64(), self._u64()
        for _ in range(num_values):
            self._skip(self._u64())
            self._value(self._u32(), 0)
        for _ in range(num_tensors):
            self._skip(self._u64())
            if (num_dims := self._u32()) > _MAX_DIMS:
                raise ValueError("a tensor has too many dimensions")
            self._skip(8 * num_dims + 4 + 8)
        return self._at

    def _value(self, kind: int, depth: int) -> None:
        if kind == _STRING:
            self._skip(self._u64())
        elif kind == _ARRAY and depth < _MAX_DEPTH:
            inner, length = self._u32(), self._u64()
            if inner in _NUMBER_BYTES:
                self._skip(length * _NUMBER_BYTES[inner])
                return
            for _ in range(length):
                self._value(inner, depth + 1)
        elif kind in _NUMBER_BYTES:
            self._skip(_NUMBER_BYTES[kind])
        else:
            raise ValueError(f"a value has the unknown type {kind}")

    def _u32(self) -> int:
        return int(struct.unpack("<I", self._take(4))[0])

    def _u64(self) -> int:
        return int(struct.unpack("<Q", self._take(8))[0])

    def _take(self, num_bytes: int) -> bytes:
        self._skip(num_bytes)
        return self._data[self._at - num_bytes : self._at]

    def _skip(self, num_bytes: int) -> None:
        self._at += num_bytes
        if self._at > len(self._data):
            raise _TooShort
