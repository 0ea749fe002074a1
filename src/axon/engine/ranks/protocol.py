"""What the leading rank and the others say to each other beside their sums. Knows no sockets.

A rank says ``Join`` and is told ``Begin``; it loads its part and says ``Loaded`` (or ``Failed``), and is told ``Go``.
From then on it is told a ``Plan`` for each step. Both say ``Beat`` now and then, so that silence means something.
"""

from dataclasses import dataclass, field

from axon.engine.config import EngineConfig
from axon.engine.protocol.codec import Failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A rank's first word. ``rank`` is 0 where it takes any number."""

    version: int
    rank: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Which rank to be, and of what. ``fingerprint`` tells one model from another."""

    rank: int
    config: EngineConfig
    model_dir: str
    fingerprint: str
    nccl: bool
    """Whether each rank has a GPU of its own; else they speak over Gloo."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The rank's part of the model stands in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """All have loaded; they find each other through a store at this port of the leading rank's host."""

    store_port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """Still here."""


Work = tuple[int, int, int, bool, list[int], list[int]]
"""A span: arrival, admission, first position, whether a token is drawn, token ids, and blocks that are new in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A step, as small as it goes; see ``axon.engine.ranks.plan``."""

    spans: list[Work] = field(default_factory=list)


VERSION = 1
KINDS = (Join, Begin, Loaded, Failed, Go, Beat, Plan)
Word = Join | Begin | Loaded | Failed | Go | Beat | Plan
