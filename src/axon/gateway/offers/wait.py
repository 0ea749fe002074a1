"""How a turn waits for a worker to start, as its client is told. Values only."""

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """Whether a deployment can answer at once."""

    READY = "ready"
    LOADING = "loading"
    """It shall run, and none of its workers has announced itself yet."""
    COLD = "cold"
    """It runs nowhere, and is started when it is asked."""
    FAILED = "failed"
    """Its version could not be loaded; that is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """How a turn waits for a worker to start."""

    state: State
    """State of its deployment; ``ready`` once a worker is there and takes the turns that wait."""
    position: int
    """Its position in the line, from 1 on, as if turns were taken in the order in which they came."""
    expected_s: float | None = None
    """Seconds until it is likely to be taken; None while nobody knows how long a start takes."""
