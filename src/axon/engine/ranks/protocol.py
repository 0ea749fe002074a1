"""The messages between the leading rank and the others, beside their collectives. Knows no sockets.

A rank sends ``Join`` and receives ``Begin``; it loads its part, sends ``Loaded`` (or ``Failed``) and receives ``Go``.
From then on it receives a ``Plan`` for each step, before it ``Moves`` where blocks are copied. Both send ``Beat`` as a
heartbeat.
"""

from dataclasses import dataclass, field

from axon.engine.config import EngineConfig
from axon.engine.protocol.codec import Failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A rank's first message; ``rank`` is 0 if any number will do."""

    version: int
    rank: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Assigns a process its rank, config and model; ``fingerprint`` identifies the model."""

    rank: int
    config: EngineConfig
    model_dir: str
    fingerprint: str
    nccl: bool
    """Whether each rank has a GPU of its own and collectives use NCCL; else they use Gloo."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The rank has loaded its part of the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """All ranks have loaded; they connect through a store at this port of the leading rank's host."""

    store_port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """A heartbeat."""


Work = tuple[int, int, int, bool, int, list[int], list[int]]
"""A span: arrival, admission, first position, whether a token is drawn, number of prompt tokens scored, token ids, new
block ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A step, as small as it goes; see ``axon.engine.ranks.plan``."""

    spans: list[Work] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """Copies of blocks beside the step that is told next: every rank copies its part of each block."""

    loads: list[tuple[int, int]] = field(default_factory=list)
    """Slot of the host's memory and block."""
    saves: list[tuple[int, int]] = field(default_factory=list)
    """Block and slot of the host's memory."""


VERSION = 3
KINDS = (Join, Begin, Loaded, Failed, Go, Beat, Plan, Moves)
Word = Join | Begin | Loaded | Failed | Go | Beat | Plan | Moves
