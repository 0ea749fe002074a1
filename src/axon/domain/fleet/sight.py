"""What control sees of the fleet at one look, and how many replicas each group shall have. Values only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from axon.domain.fleet.replica import Group, Launched
from axon.domain.presence import Presence
from axon.domain.registry.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Demand:
    """Work for one group that has been accepted and has not ended."""

    waiting: int = 0
    """Jobs in its lanes."""
    unfinished: int = 0
    """Accepted turns that have not ended, as far as they are in the store: waiting ones and running ones."""

    def __bool__(self) -> bool:
        return self.waiting > 0 or self.unfinished > 0

    def __str__(self) -> str:
        return f"{self.waiting} jobs wait, {self.unfinished} turns are unfinished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """Everything that a decision about the fleet is made from. None stands for what could not be read."""

    snapshot: Snapshot
    launched: Sequence[Launched] | None
    """What the launcher runs: all of it, or None."""
    presences: Sequence[Presence] | None
    """Announcements of the workers of every deployment in the snapshot, launched here or not."""
    run_id: str | None
    """Id of the run of ``live``, which carries the presences."""
    demand: Mapping[Group, Demand] = field(default_factory=dict)
    """A group that is missing here has a demand that is not known."""


@dataclass(frozen=True, slots=True)
class Target:
    """How many replicas a group shall have."""

    count: int
    reason: str
    """Why so many, in words that an operator reads."""
