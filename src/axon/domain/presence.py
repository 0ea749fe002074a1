"""A worker as it speaks of itself: its name, what it serves and how busy it is. Knows no service that carries it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from axon.domain.deployment import Deployment


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How busy an engine is."""

    slots: int
    """Sequences that it runs at once."""
    free_slots: int
    num_tokens: int
    """Tokens of what runs, prompts and answers so far."""
    tokens_per_s: float = 0.0
    """What it serves when every slot is taken, prompts and answers; 0 while that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """What a worker says every second or so, for as long as it is there."""

    v: int = 1
    worker: str
    """Its name, which outlives a restart; no two workers of a deployment have the same."""
    incarnation: str
    """This life of it: the owner of its jobs and the holder of its lease."""
    deployment: Deployment
    """What it serves: enough for a gateway to take requests for it."""
    load: Load
    pool: str = ""
    """The pool it works for; empty for the one that everybody shares."""
    draining: bool = False
    """It finishes what it has and takes nothing new."""
    at: float
    """Unix time at which it said so."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a later version, kept as they came."""


def service_rate(presences: Sequence[Presence]) -> float | None:
    """What workers serve together when they are busy; one that has not been yet counts like the others. None: nobody
    has been."""
    rates = [presence.load.tokens_per_s for presence in presences if not presence.draining]
    known = [rate for rate in rates if rate > 0]
    return sum(known) / len(known) * len(rates) if known else None
