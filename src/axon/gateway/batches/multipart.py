"""An incremental parser of ``multipart/form-data`` (RFC 7578) that holds no more than a boundary and a part's headers.

No I/O. Bytes go in by ``feed``, events come out; ``close`` says whether the body was complete. It takes what HTTP
clients send, and refuses preambles, nested multiparts and transfer encodings.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from axon.errors import InvalidInput

_MAX_HEADER_BYTES = 4096
"""The headers of one part."""
_MAX_PARTS = 32
_BOUNDARY = re.compile(r'(?:^|;)\s*boundary=(?:"([^"\r\n]{1,70})"|([^\s;,"]{1,70}))', re.IGNORECASE)
_PARAMETER = re.compile(r';\s*(name|filename)="((?:[^"\\]|\\.)*)"', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PartBegan:
    """A part begins; ``filename`` is None for a plain field."""

    name: str
    filename: str | None


@dataclass(frozen=True, slots=True)
class PartData:
    """A piece of the part that began last."""

    data: bytes


Event = PartBegan | PartData


def boundary_of(content_type: str) -> bytes:
    """The boundary that a Content-Type names; raises ``InvalidInput`` for one that is no multipart form."""
    kind, _, parameters = content_type.partition(";")
    found = _BOUNDARY.search(parameters)
    if kind.strip().lower() != "multipart/form-data" or found is None:
        raise InvalidInput("Send the file as multipart/form-data with a boundary.", code="invalid_content_type")
    return (found[1] or found[2]).encode("latin-1", "replace")


class MultipartParser:
    """Parses one body."""

    def __init__(self, boundary: bytes) -> None:
        self._mark = b"\r\n--" + boundary
        self._buffer = b"\r\n"  # so that the first boundary looks like every other one
        self._in_part = self._is_over = False
        self._num_parts = 0

    def feed(self, data: bytes) -> Iterator[Event]:
        """The events that these bytes complete; raises ``InvalidInput`` where they are no multipart form."""
        if self._is_over:  # an epilogue has no meaning
            return
        self._buffer += data
        while True:
            if self._in_part:
                found = self._buffer.find(self._mark)
                if found < 0:
                    # What could be the beginning of a boundary stays.
                    keep = len(self._mark) - 1
                    if len(self._buffer) > keep:
                        yield PartData(self._buffer[:-keep])
                        self._buffer = self._buffer[-keep:]
                    return
                if found:
                    yield PartData(self._buffer[:found])
                self._buffer, self._in_part = self._buffer[found:], False
            if not self._at_boundary():
                return
            end = self._buffer.find(b"\r\n\r\n", len(self._mark))
            if end < 0:
                self._check_header(len(self._buffer))
                return
            self._check_header(end)
            yield self._began(self._buffer[len(self._mark) : end])
            self._buffer, self._in_part = self._buffer[end + 4 :], True

    def close(self) -> None:
        """Raises ``InvalidInput`` if the last boundary has not come."""
        if not self._is_over:
            raise InvalidInput("The multipart body ends before its last boundary.", code="invalid_multipart")

    def _at_boundary(self) -> bool:
        """Whether the buffer begins with the boundary of a part; sets ``_is_over`` at the last one."""
        needed = len(self._mark) + 2
        if not self._buffer.startswith(self._mark[: len(self._buffer)]):
            raise InvalidInput("The multipart body does not begin with its boundary.", code="invalid_multipart")
        if len(self._buffer) < needed:
            return False
        after = self._buffer[len(self._mark) : needed]
        if after == b"--":
            self._is_over, self._buffer = True, b""
            return False
        if after != b"\r\n":
            raise InvalidInput("A boundary of the multipart body is not ended.", code="invalid_multipart")
        return True

    def _check_header(self, num_bytes: int) -> None:
        if num_bytes > len(self._mark) + _MAX_HEADER_BYTES:
            raise InvalidInput("The headers of a part are too long.", code="invalid_multipart")

    def _began(self, header: bytes) -> PartBegan:
        self._num_parts += 1
        if self._num_parts > _MAX_PARTS:
            raise InvalidInput(f"The form has more than {_MAX_PARTS} parts.", code="invalid_multipart")
        for line in header.decode("utf-8", "replace").split("\r\n"):
            name, _, value = line.partition(":")
            if name.strip().lower() == "content-disposition":
                found = {key.lower(): re.sub(r"\\(.)", r"\1", text) for key, text in _PARAMETER.findall(value)}
                if value.partition(";")[0].strip().lower() == "form-data" and "name" in found:
                    return PartBegan(found["name"], found.get("filename"))
        raise InvalidInput("A part of the form has no name.", code="invalid_multipart")
