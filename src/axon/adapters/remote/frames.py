"""Frames between a front and the hub, their bodies in msgpack. No I/O.

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
from axon.runtime.framing import MAX_FRAME_BYTES, framed

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
    return framed(body)


def asked(body: bytes) -> tuple[int, str, Any]:
    """A front's frame: number, method, arguments still encoded."""
    return _ASKED.decode(body)


def answered(body: bytes) -> tuple[int, int, Any]:
    """The hub's frame: number, kind, value still encoded."""
    return _ANSWERED.decode(body)
