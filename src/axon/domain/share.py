"""How many slots are whose: the same for a worker that takes jobs and for an engine that runs them. Pure.

Nobody gets more than it wants; what it leaves is the others', by their weights. A reserved part comes before weights.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from axon.domain.tenant import Tier

_ROUNDING = 1e-9
_PREFILLED_COST, _CACHED_COST, _EMITTED_COST = 1.0, 0.1, 2.0


def cost(*, prefilled: int = 0, cached: int = 0, emitted: int = 0) -> float:
    """What tokens count, in the queue and in the engine: a prompt's that were found in a cache next to nothing."""
    return _PREFILLED_COST * prefilled + _CACHED_COST * cached + _EMITTED_COST * emitted


_PULLS = {Tier.PRIORITY: 2.0, Tier.DEFAULT: 1.0, Tier.FLEX: 0.5}


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """A tenant's part in the crowd: what it holds and what it waits for."""

    held: int
    waiting: int
    weight: float = 1.0
    reserved: float = 0.0
    """Share of all slots that is its own whenever it asks."""

    @property
    def num(self) -> int:
        return self.held + self.waiting


def fair_slots(num_slots: int, wants: Mapping[str, Want]) -> dict[str, float]:
    """Each tenant's part of the slots, in parts of a slot: as level as weights, reserves and wishes allow."""
    least = {tenant: min(float(want.num), want.reserved * num_slots) for tenant, want in wants.items()}
    promised = sum(least.values())
    if promised >= num_slots:  # more was reserved than there is
        return {tenant: part * num_slots / promised for tenant, part in least.items()}
    rising = [(least[tenant] / want.weight, want.weight) for tenant, want in wants.items()]
    content = [(want.num / want.weight, -want.weight) for want in wants.values()]
    level, speed, left = 0.0, 0.0, num_slots - promised
    # The level rises like water: from one height to the next, those whose parts rise with it share what is poured in.
    for height, change in sorted([*rising, *content]):
        if speed > _ROUNDING:
            if (height - level) * speed >= left:
                level += left / speed
                break
            left -= (height - level) * speed
        level, speed = height, speed + change
    return {tenant: min(float(want.num), max(least[tenant], level * want.weight)) for tenant, want in wants.items()}


def short_of(num_slots: int, wants: Mapping[str, Want]) -> list[str]:
    """Tenants that wait for a slot of their own while others hold more than theirs; the worst off first."""
    parts = fair_slots(num_slots, wants)
    lacks = {
        tenant: parts[tenant] - want.held
        for tenant, want in wants.items()
        if want.waiting and want.held + 1 <= parts[tenant] + _ROUNDING
    }
    return sorted(lacks, key=lambda tenant: (-lacks[tenant], tenant))


def most_over(num_slots: int, wants: Mapping[str, Want]) -> str | None:
    """The tenant that holds most beyond its part, by a whole slot at least; None where nobody does."""
    return next(iter(beyond(num_slots, wants, least=1 - _ROUNDING)), None)


def beyond(num_slots: int, wants: Mapping[str, Want], *, least: float = _ROUNDING) -> list[str]:
    """Tenants that hold more than their part, by so much of a slot at least; who holds most of it first."""
    parts = fair_slots(num_slots, wants)
    excess = {tenant: want.held - parts[tenant] for tenant, want in wants.items()}
    found = [tenant for tenant in wants if excess[tenant] >= least]
    return sorted(found, key=lambda tenant: (excess[tenant], tenant), reverse=True)


def pull(weight: float, tier: Tier) -> float:
    """How strongly a request draws: its tier counts as a multiple of its tenant's weight, 4 : 2 : 1."""
    return weight * _PULLS[tier]
