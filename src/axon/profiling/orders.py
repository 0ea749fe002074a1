"""The messages between a gateway and the processes of a fleet about profiles, over the wake-ups of ``live``.

gateway ─► all       RollCall, Order, GiveUp  on the channel ``ORDERS``
process ─► gateway   Here, Began, Refused, Done   on the channel of the call's or order's id

A finished profile is left in the cache, under the order's id, for ``KEPT_S``.
"""

from dataclasses import dataclass

import msgspec

from axon.errors import AxonError, rebuilt
from axon.profiling.profile import Kind

ORDERS = "profiles"
KEPT_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A process that can be profiled."""

    name: str
    role: str
    """``server``, ``gateway``, ``worker``, ``control`` or ``engine``."""
    pid: int
    host: str = ""
    model: str = ""
    """The model that an engine runs."""


class RollCall(msgspec.Struct, frozen=True, tag=True):
    """Every process shall say that it is there."""

    id: str


class Order(msgspec.Struct, frozen=True, tag=True):
    """The subject of this name shall be profiled."""

    id: str
    subject: str
    kind: Kind
    seconds: float


class GiveUp(msgspec.Struct, frozen=True, tag=True):
    """Nobody waits for the order of this id any more."""

    id: str


class Here(msgspec.Struct, frozen=True, tag=True):
    """The subjects that one process can profile: itself, and its engines."""

    subjects: list[Subject]


class Began(msgspec.Struct, frozen=True, tag=True):
    """The order is being carried out."""


class Refused(msgspec.Struct, frozen=True, tag=True):
    """The order is not carried out, or failed."""

    kind: str
    message: str
    code: str
    param: str | None = None

    @classmethod
    def of(cls, error: AxonError) -> "Refused":
        return cls(type(error).__name__, error.message, error.code, error.param)

    def error(self) -> AxonError:
        """The error, as it was raised in the other process."""
        return rebuilt(self.kind, self.message, code=self.code, param=self.param)


class Done(msgspec.Struct, frozen=True, tag=True):
    """The profile is in the cache."""


Asked = RollCall | Order | GiveUp
Answered = Here | Began | Refused | Done

_ASKED = msgspec.msgpack.Decoder(Asked)
_ANSWERED = msgspec.msgpack.Decoder(Answered)
_ENCODER = msgspec.msgpack.Encoder()


def encode(message: Asked | Answered) -> bytes:
    return _ENCODER.encode(message)


def asked(payload: bytes) -> Asked | None:
    """Decodes a gateway's message; None for one that this release does not know."""
    try:
        return _ASKED.decode(payload) if payload else None
    except (msgspec.MsgspecError, RecursionError):
        return None


def answered(payload: bytes) -> Answered | None:
    """Decodes a process's answer; None for one that this release does not know."""
    try:
        return _ANSWERED.decode(payload) if payload else None
    except (msgspec.MsgspecError, RecursionError):
        return None


def answers(order_id: str) -> str:
    """The channel on which an order, or a roll call, is answered."""
    return f"{ORDERS}/{order_id}"


def result_key(order_id: str) -> str:
    """The key of the cache under which the profile is left."""
    return f"profile/{order_id}"
