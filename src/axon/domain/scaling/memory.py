"""Memory of the autoscaler between two looks at a group: a value that is handed back in. Bounded in size."""

from dataclasses import dataclass, field, replace

from axon.domain.scaling.filling import Filling
from axon.domain.scaling.history import History
from axon.domain.scaling.wave import Wave

_MOST_NEEDS = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What one look leaves to the next. An empty one is that of a leader that has just begun: it takes nothing away
    before it has watched for the hold time."""

    replicas: int | None = None
    """Replicas decided on last; None before the first decision."""
    history: History = field(default_factory=History)
    wave: Wave = field(default_factory=Wave)
    filling: Filling = field(default_factory=Filling)
    needs: tuple[tuple[float, int], ...] = ()
    """(Unix time, replicas needed) of recent looks, without those that a later look's larger need covers."""
    quiet_since: float | None = None
    """Unix time since which the backlog has been low; None while it is not."""
    full: float | None = None
    """Unix time of the last look at which so much waited that admission may have refused requests."""
    raised: float | None = None
    """Unix time of the last decision for more replicas."""
    boosted: float | None = None
    """Unix time of the last replica that was added because a target was missed."""

    def with_need(self, now: float, need: int, hold_s: float) -> "Memory":
        """The memory with the need of this look, without needs that are older than ``hold_s``."""
        kept = [(at, each) for at, each in self.needs if now - hold_s < at < now and each > need]
        return replace(self, needs=(*kept[-(_MOST_NEEDS - 1) :], (now, need)))

    @property
    def largest_need(self) -> int:
        """The largest need of the time that is held."""
        return max((need for _, need in self.needs), default=0)
