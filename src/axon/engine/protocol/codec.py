"""The codec between processes: length-prefixed msgpack frames. Does no I/O, and never pickles.

A frame is a big-endian u32 length and a msgpack pair ``[message type, fields]``.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from axon.engine.config import EngineConfig
from axon.engine.protocol.messages import Abort, Add, Ready, StepOutput

MAX_FRAME_BYTES = 64 << 20
_PREFIX_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The worker's first message: which engine to run. ``model_dir`` is empty for an engine without a model."""

    config: EngineConfig
    model_dir: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """The engine's last message when it cannot start."""

    message: str


Message = Start | Add | Abort | Ready | StepOutput | Failed

_PAIR = msgspec.msgpack.Decoder(tuple[str, msgspec.Raw])
_ENCODER = msgspec.msgpack.Encoder()
_KINDS: tuple[type, ...] = (Start, Add, Abort, Ready, StepOutput, Failed)


class BadFrame(ValueError):
    """The peer sent bytes that are no frame of this protocol."""


def encode(message: Any) -> bytes:
    """Returns the message as one frame."""
    body = _ENCODER.encode((type(message).__name__, message))
    return len(body).to_bytes(_PREFIX_BYTES, "big") + body


class Decoder:
    """Decodes bytes, split anywhere, into messages of the given types; by default a worker's and its engine's."""

    def __init__(self, kinds: tuple[type, ...] = _KINDS) -> None:
        self._buffer = bytearray()
        self._decoders: dict[str, msgspec.msgpack.Decoder[Any]] = {
            kind.__name__: msgspec.msgpack.Decoder(kind) for kind in kinds
        }

    def feed(self, data: bytes) -> list[Any]:
        """Returns the messages that ``data`` completes; raises BadFrame."""
        self._buffer += data
        messages: list[Any] = []
        start = 0
        while len(self._buffer) - start >= _PREFIX_BYTES:
            body_start = start + _PREFIX_BYTES
            length = int.from_bytes(self._buffer[start:body_start], "big")
            if length > MAX_FRAME_BYTES:
                raise BadFrame(f"a frame of {length} bytes is over the limit of {MAX_FRAME_BYTES}")
            if len(self._buffer) - body_start < length:
                break
            messages.append(self._decode(bytes(self._buffer[body_start : body_start + length])))
            start = body_start + length
        del self._buffer[:start]
        return messages

    def _decode(self, body: bytes) -> Any:
        try:
            kind, fields = _PAIR.decode(body)
            return self._decoders[kind].decode(fields)
        except (msgspec.MsgspecError, KeyError) as error:
            raise BadFrame(f"not a message: {error}") from error
