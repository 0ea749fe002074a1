"""Weighted max-min fair shares of slots, for the worker that takes jobs and the engine that runs them. Pure functions.

No tenant gets more than it wants; the rest is divided among the others by weight. Reserved slots come before weights.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from axon.domain.tenants.tenant import Tier

_ROUNDING = 1e-9
_PREFILLED_COST, _CACHED_COST, _EMITTED_COST = 1.0, 0.1, 2.0


def cost(*, prefilled: int = 0, cached: int = 0, emitted: int = 0) -> float:
    """Cost of tokens in units of one computed prompt token, in the queue and in the engine. Cached ones cost a
    tenth."""
    return _PREFILLED_COST * prefilled + _CACHED_COST * cached + _EMITTED_COST * emitted


_TIER_FACTORS = {Tier.PRIORITY: 2.0, Tier.DEFAULT: 1.0, Tier.FLEX: 0.5}


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """A tenant's demand for slots: those it holds and those it waits for."""

    held: int
    waiting: int
    weight: float = 1.0
    reserved: float = 0.0
    """Fraction of all slots reserved for it whenever it wants them, 0 to 1."""

    @property
    def num(self) -> int:
        return self.held + self.waiting


def fair_slots(num_slots: int, wants: Mapping[str, Want]) -> dict[str, float]:
    """Each tenant's fair share in (fractional) slots: weighted max-min fairness with reservations, by water-filling."""
    least = {tenant: min(float(want.num), want.reserved * num_slots) for tenant, want in wants.items()}
    promised = sum(least.values())
    if promised >= num_slots:  # more is reserved than exists: scale down
        return {tenant: part * num_slots / promised for tenant, part in least.items()}
    rising = [(least[tenant] / want.weight, want.weight) for tenant, want in wants.items()]
    content = [(want.num / want.weight, -want.weight) for want in wants.values()]
    level, speed, left = 0.0, 0.0, num_slots - promised
    # Water-filling: between two heights, the tenants that are neither below their reserve nor satisfied share the rest.
    for height, change in sorted([*rising, *content]):
        if speed > _ROUNDING:
            if (height - level) * speed >= left:
                level += left / speed
                break
            left -= (height - level) * speed
        level, speed = height, speed + change
    return {tenant: min(float(want.num), max(least[tenant], level * want.weight)) for tenant, want in wants.items()}


def short_of(num_slots: int, wants: Mapping[str, Want]) -> list[str]:
    """Tenants that wait although they hold a whole slot less than their fair share; the largest deficit first."""
    parts = fair_slots(num_slots, wants)
    lacks = {
        tenant: parts[tenant] - want.held
        for tenant, want in wants.items()
        if want.waiting and want.held + 1 <= parts[tenant] + _ROUNDING
    }
    return sorted(lacks, key=lambda tenant: (-lacks[tenant], tenant))


def most_over(num_slots: int, wants: Mapping[str, Want]) -> str | None:
    """The tenant that exceeds its fair share the most, by at least a whole slot; None where nobody does."""
    return next(iter(beyond(num_slots, wants, least=1 - _ROUNDING)), None)


def beyond(num_slots: int, wants: Mapping[str, Want], *, least: float = _ROUNDING) -> list[str]:
    """Tenants that exceed their fair share by at least ``least`` slots; the largest excess first."""
    parts = fair_slots(num_slots, wants)
    excess = {tenant: want.held - parts[tenant] for tenant, want in wants.items()}
    found = [tenant for tenant in wants if excess[tenant] >= least]
    return sorted(found, key=lambda tenant: (excess[tenant], tenant), reverse=True)


def effective_weight(weight: float, tier: Tier) -> float:
    """Weight of a request in fair sharing: its tenant's weight times its tier's factor (priority 2, default 1, flex
    ½)."""
    return weight * _TIER_FACTORS[tier]
