"""Frames between a front and the hub: a big-endian u32 length, then msgpack. No I/O.

front ─► hub   [number, method, arguments]
               [number, LISTEN or LEAVE, channel]       the number names the subscription
hub ─► front   [number, RESULT, value]
               [number, FAILURE, Failure]
               [number, NOTIFIED, payload]
"""

from typing import Any

import msgspec

from axon.domain.record import REFUSED
from axon.errors import AxonError, DependencyDown, rebuilt

MAX_FRAME_BYTES = 64 << 20
_PREFIX_BYTES = 4
LISTEN, LEAVE = "listen", "leave"
RESULT, FAILURE, NOTIFIED = 0, 1, 2

_ENCODER = msgspec.msgpack.Encoder()
_ASKED = msgspec.msgpack.Decoder(tuple[int, str, msgspec.Raw])
_ANSWERED = msgspec.msgpack.Decoder(tuple[int, int, msgspec.Raw])


class Failure(msgspec.Struct, frozen=True, array_like=True):
    """An error that a method raised."""

    kind: str
    message: str
    code: str
    param: str | None
    retry_after_s: float | None

    @classmethod
    def of(cls, error: AxonError) -> "Failure":
        return cls(type(error).__name__, error.message, error.code, error.param, error.retry_after_s)

    def error(self) -> AxonError:
        """The error, as it was raised at the other end."""
        return rebuilt(self.kind, self.message, code=self.code, param=self.param, retry_after_s=self.retry_after_s)


def frame(number: int, kind: str | int, value: object) -> bytes:
    """One frame; raises ``DependencyDown`` for a value that cannot be sent, such as text with a lone surrogate."""
    try:
        body = _ENCODER.encode((number, kind, value))
    except (UnicodeEncodeError, TypeError) as error:
        raise DependencyDown("A value cannot be sent to another process.", code=REFUSED) from error
    if len(body) > MAX_FRAME_BYTES:
        raise DependencyDown(f"A message of {len(body)} bytes is over the limit of {MAX_FRAME_BYTES}.")
    return len(body).to_bytes(_PREFIX_BYTES, "big") + body


class Frames:
    """Cuts received bytes into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The bodies of the frames that ``data`` completes; raises ``ValueError`` for what is no frame."""
        self._buffer += data
        bodies, start = [], 0
        while len(self._buffer) - start >= _PREFIX_BYTES:
            begin = start + _PREFIX_BYTES
            length = int.from_bytes(self._buffer[start:begin], "big")
            if length > MAX_FRAME_BYTES:
                raise ValueError(f"a frame of {length} bytes is over the limit of {MAX_FRAME_BYTES}")
            if len(self._buffer) - begin < length:
                break
            start = begin + length
            bodies.append(bytes(self._buffer[begin:start]))
        del self._buffer[:start]
        return bodies


def asked(body: bytes) -> tuple[int, str, Any]:
    """A front's frame: number, method, arguments still encoded."""
    return _ASKED.decode(body)


def answered(body: bytes) -> tuple[int, int, Any]:
    """The hub's frame: number, kind, value still encoded."""
    return _ANSWERED.decode(body)
