"""The order of sequences: who starts next and, read backwards, who is parked first. No I/O, no clock, no blocks.

One order for both is what keeps the scheduler from livelock: the first in the order is never parked for anybody else.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, Protocol

from axon.domain.fairness.share import cost
from axon.domain.fairness.virtual_counters import VirtualCounters

PolicyName = Literal["fair", "first_come"]
Rank = tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A sequence as a policy sees it."""

    arrival: int
    """Number of the sequence in the order of arrival."""
    tenant: str = ""
    weight: float = 1.0
    """The tenant's weight relative to other tenants'."""
    reserved: float = 0.0
    """Fraction of the slots reserved for the tenant."""
    priority: int = 0
    """The sequence's tier; a higher number goes before every lower one."""


class Policy(Protocol):
    """Orders claims."""

    def arrive(self, claim: Claim, waiting: Collection[str] = ()) -> None:
        """Takes in a sequence; ``waiting`` are the tenants whose sequences wait already."""
        ...

    def leave(self, claim: Claim) -> None:
        """Forgets a sequence that has ended or was aborted."""
        ...

    def charge(self, claim: Claim, *, prefilled: int = 0, emitted: int = 0, cached: int = 0) -> None:
        """Charges the tenant for tokens: of the prompt computed, emitted, or of the prompt found in the cache."""
        ...

    def rank(self, claim: Claim) -> Rank:
        """Sort key: the smaller, the sooner served and the later parked; no two claims have the same rank."""
        ...

    def may_overtake(self, claim: Claim, other: Claim) -> bool:
        """Whether a claim whose tenant holds too few slots may go before the other, against the order of ranks."""
        ...


class FirstCome:
    """First come, first served within a priority."""

    def arrive(self, claim: Claim, waiting: Collection[str] = ()) -> None:
        """Needs no state."""

    def leave(self, claim: Claim) -> None:
        """Needs no state."""

    def charge(self, claim: Claim, *, prefilled: int = 0, emitted: int = 0, cached: int = 0) -> None:
        """Ignores the service received."""

    def rank(self, claim: Claim) -> Rank:
        """Priority, then arrival."""
        return (-claim.priority, claim.arrival)

    def may_overtake(self, claim: Claim, other: Claim) -> bool:
        """Nobody overtakes: slots are not shared out by tenant."""
        return False


class Fair:
    """The least served tenant first, by virtual token counters (VTC).

    The counter of a tenant that returns from idle is lifted to the level, and that of a tenant which has nothing
    waiting to at most ``lead`` below those which have.

    A tenant's share of the slots goes before its counter, within bounds: a tenant whose counter is ahead of another's
    by more than ``lead`` takes no slot before it.
    """

    def __init__(self, *, lead: float = 8192.0) -> None:
        self._lead = lead
        self._counters = VirtualCounters()
        self._num_here: Counter[str] = Counter()
        """How many sequences each active tenant has."""

    def served(self, tenant: str) -> float:
        """The tenant's counter, in tokens over weight."""
        return self._counters.of(tenant)

    def arrive(self, claim: Claim, waiting: Collection[str] = ()) -> None:
        """Lifts the tenant's counter if this is its only sequence, or its only one that waits while others' do."""
        if claim.tenant not in self._num_here:
            self._counters.raise_level(self._num_here)
            self._counters.lift(claim.tenant)
        if waiting and claim.tenant not in waiting:
            self._counters.lift(claim.tenant, min(map(self._counters.of, waiting)) - self._lead)
        self._num_here[claim.tenant] += 1

    def leave(self, claim: Claim) -> None:
        """Forgets idle tenants that have saved up nothing; the last tenant to leave sets the level."""
        self._num_here[claim.tenant] -= 1
        if not self._num_here[claim.tenant]:
            del self._num_here[claim.tenant]
        self._counters.raise_level(self._num_here or (claim.tenant,))
        self._counters.forget(self._num_here)

    def charge(self, claim: Claim, *, prefilled: int = 0, emitted: int = 0, cached: int = 0) -> None:
        """Raises the tenant's counter."""
        amount = cost(prefilled=prefilled, cached=cached, emitted=emitted)
        self._counters.charge(claim.tenant, amount / claim.weight)

    def rank(self, claim: Claim) -> Rank:
        """Priority, then the tenant's counter, then arrival."""
        return (-claim.priority, self._counters.of(claim.tenant), claim.arrival)

    def may_overtake(self, claim: Claim, other: Claim) -> bool:
        """Whether the tenant's counter is at most ``lead`` ahead of the other's, or its claim is of a higher priority,
        which goes before a lower one whatever either tenant was served."""
        return (
            claim.priority > other.priority
            or self._counters.of(claim.tenant) <= self._counters.of(other.tenant) + self._lead
        )


def make_policy(name: PolicyName) -> Policy:
    """The policy of that name."""
    return Fair() if name == "fair" else FirstCome()
