"""The codec between processes: length-prefixed msgpack frames. Does no I/O, and never pickles.

A frame is a big-endian u32 length and a msgpack pair ``[message type, fields]``.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from axon.engine.config import EngineConfig
from axon.engine.protocol.messages import Abort, Add, Erase, Ready, Record, Recorded, StepOutput, StopRecord
from axon.runtime.framing import BadFrame, Framer, framed


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The worker's first message: which engine to run. ``model_dir`` is empty for an engine without a model."""

    config: EngineConfig
    model_dir: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Warm:
    """Before ``Start``: the process shall import what engines with this config need, and wait.

    ``model_dir`` is the model that it will most likely run: its tokenizer is read for grammars; empty for none.
    """

    config: EngineConfig
    model_dir: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """The engine's last message when it cannot start."""

    message: str


Message = Warm | Start | Add | Abort | Erase | Record | StopRecord | Ready | StepOutput | Recorded | Failed

_PAIR = msgspec.msgpack.Decoder(tuple[str, msgspec.Raw])
_ENCODER = msgspec.msgpack.Encoder()
_KINDS: tuple[type, ...] = (
    Warm,
    Start,
    Add,
    Abort,
    Erase,
    Record,
    Ready,
    StepOutput,
    Recorded,
    Failed,
    StopRecord,
)


def encode(message: Any) -> bytes:
    """Returns the message as one frame."""
    body = _ENCODER.encode((type(message).__name__, message))
    return framed(body)


class Decoder:
    """Decodes bytes, split anywhere, into messages of the given types; by default a worker's and its engine's."""

    def __init__(self, kinds: tuple[type, ...] = _KINDS) -> None:
        self._framer = Framer()
        self._decoders: dict[str, msgspec.msgpack.Decoder[Any]] = {
            kind.__name__: msgspec.msgpack.Decoder(kind) for kind in kinds
        }

    def feed(self, data: bytes) -> list[Any]:
        """Returns the messages that ``data`` completes; raises BadFrame."""
        return [self._decode(body) for body in self._framer.feed(data)]

    def _decode(self, body: bytes) -> Any:
        try:
            kind, fields = _PAIR.decode(body)
            return self._decoders[kind].decode(fields)
        except (msgspec.MsgspecError, KeyError) as error:
            raise BadFrame(f"not a message: {error}") from error
