"""What control sees of the fleet at one look, and how many replicas each group shall have. Values only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from axon.domain.fleet.demand import Demand
from axon.domain.fleet.replica import Group, Launched
from axon.domain.presence import Presence
from axon.domain.registry.snapshot import Snapshot


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

    def demand_of(self, group: Group) -> Demand | None:
        """The group's demand; None if it is not known whether there is any."""
        demand = self.demand.get(group)
        return demand if demand is not None and demand.is_known else None


@dataclass(frozen=True, slots=True)
class Target:
    """How many replicas a group shall have."""

    count: int
    reason: str
    """Why so many, in words that an operator reads."""
    is_full: bool = False
    """Whether there is no room for more: then none may run although somebody waits. Its turns wait for a place."""
    most: int | None = None
    """The largest number that whoever set the target would ask for; None where only the deployment's limit holds."""
