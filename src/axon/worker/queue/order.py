"""The order in which lanes are asked for a job: virtual-counter fair queueing by weight. Pure functions.

With a free slot, the lane whose tenants were served least comes first. Without one, only lanes are asked whose tenants
hold less than their part of the slots here: the engine then parks a sequence of a tenant that holds more than its part.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from axon.domain.fairness.share import Want, short_of
from axon.domain.job import Job
from axon.domain.tenants.tenant import Tier

SLOT_COST = 128.0
"""The cost that a held slot adds to its lane's counter in advance: that of its next 64 tokens. Without it, the tenant
with the smallest counter would take every free slot at once."""
FLEX_WAIT_S = 5.0
"""A flex job is passed over by other tiers for at most this long; after that it competes as one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """The facts about a tenant with jobs in a lane that the order depends on."""

    weight: float = 1.0
    reserved: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A lane that may have jobs."""

    lane: str
    tier: Tier = Tier.DEFAULT
    parties: Mapping[str, Party]
    """The tenants whose jobs may wait there, by tenant id; empty where they are not known."""
    held: int = 0
    """Slots that jobs of this lane hold on this worker."""
    waited_s: float = 0.0
    """Seconds since a job was last taken from the lane, or since it was first hinted at."""

    @property
    def yields(self) -> bool:
        """Whether lanes of other tiers go first."""
        return self.tier is Tier.FLEX and self.waited_s < FLEX_WAIT_S


def in_order(waiting: Iterable[Waiting], served: Callable[[str], float], level: float) -> list[Waiting]:
    """Sorts the lanes into the order in which they are asked; equal ones keep their order."""
    return sorted(waiting, key=lambda each: (each.yields, score(each, served, level)))


def score(lane: Waiting, served: Callable[[str], float], level: float) -> float:
    """The lane's virtual counter, with the cost of the slots it holds.

    Several tenants in one lane count as one tenant with the sum of their weights; a lane whose tenants are not known
    counts as one at the level, like a tenant that was never served.
    """
    weight = sum(party.weight for party in lane.parties.values()) or 1.0
    had = sum(party.weight * served(tenant) for tenant, party in lane.parties.items()) / weight
    return (had if lane.parties else level) + SLOT_COST * lane.held / weight


def short(waiting: Sequence[Waiting], held: Iterable[Job], num_slots: int) -> list[Waiting]:
    """The lanes whose tenants hold less than their part of a full worker's slots, the largest shortage first.

    Lanes of the flex tier are left out, and lanes whose tenants are not known. Among the others the tier does not
    matter here: it changes how fast a slot is served, not how many slots a tenant gets.
    """
    urgent = [each for each in waiting if each.tier is not Tier.FLEX and each.parties]
    if not urgent:
        return []
    wants: dict[str, Want] = {}
    for job in held:
        _add(wants, job.tenant, job.weight, job.reserved, held=job.choices)
    for each in urgent:
        for tenant, party in each.parties.items():
            _add(wants, tenant, party.weight, party.reserved, waiting=1)
    places = {tenant: place for place, tenant in enumerate(short_of(num_slots, wants))}
    found = [(min(places.get(tenant, len(wants)) for tenant in each.parties), each) for each in urgent]
    return [each for place, each in sorted(found, key=lambda pair: pair[0]) if place < len(wants)]


def _add(
    wants: dict[str, Want], tenant: str, weight: float, reserved: float, *, held: int = 0, waiting: int = 0
) -> None:
    """Adds slots to a tenant's demand; the newest weight and reserve count."""
    known = wants.get(tenant, Want(held=0, waiting=0, weight=weight))
    wants[tenant] = Want(
        held=known.held + held,
        waiting=known.waiting + waiting,
        weight=weight,
        reserved=reserved,
    )
