"""Which lane next? Whoever was served least by weight. Pure: what may wait, who was served and who holds what.

With a free slot, lanes are asked in an order; without one, those whose tenants hold less than their part here may be
taken from all the same: the engine then parks what somebody else holds too much.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from axon.domain.job import Job
from axon.domain.share import Want, short_of
from axon.domain.tenant import Tier

AHEAD = 128.0
"""What a slot that is held counts on top of what was served: its next 64 tokens. Keeps whoever is behind from taking
every slot at once, and fills the first slots of an idle worker by turns."""
PATIENCE_S = 5.0
"""What is flex yields to the others for so long, then it counts as they do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """A tenant that has jobs in a lane, as far as it matters here."""

    weight: float = 1.0
    reserved: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A lane that may have jobs."""

    lane: str
    tier: Tier = Tier.DEFAULT
    parties: Mapping[str, Party]
    """By tenant, whose they may be; empty where nobody knows."""
    held: int = 0
    """Slots that jobs of this lane hold here."""
    waited_s: float = 0.0
    """Since it last had its turn."""

    @property
    def yields(self) -> bool:
        return self.tier is Tier.FLEX and self.waited_s < PATIENCE_S


def in_order(waiting: Iterable[Waiting], served: Callable[[str], float], level: float) -> list[Waiting]:
    """The lanes as they are to be asked; equal ones as they come."""
    return sorted(waiting, key=lambda each: (each.yields, score(each, served, level)))


def score(lane: Waiting, served: Callable[[str], float], level: float) -> float:
    """How much its tenants have had, and are about to have, by their weights; several in one lane count as one with the
    sum of their weights. Who is not known is at the level, as everybody is who was not served."""
    weight = sum(party.weight for party in lane.parties.values()) or 1.0
    had = sum(party.weight * served(tenant) for tenant, party in lane.parties.items()) / weight
    return (had if lane.parties else level) + AHEAD * lane.held / weight


def short(waiting: Sequence[Waiting], held: Iterable[Job], num_slots: int) -> list[Waiting]:
    """Those of the lanes whose tenants are short of their part of a full worker's slots, the worst off first.

    A tier takes nobody's part: it changes how fast a slot is served. What is flex is none of them, nor a lane whose
    tenants nobody knows.
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
    """The newest word on a tenant counts."""
    known = wants.get(tenant, Want(held=0, waiting=0, weight=weight))
    wants[tenant] = Want(
        held=known.held + held,
        waiting=known.waiting + waiting,
        weight=weight,
        reserved=reserved,
    )
