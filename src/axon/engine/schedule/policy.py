"""The order of sequences: who starts next and, read backwards, who is parked first. No I/O, no clock, no blocks.

One order for both is what keeps the scheduler from livelock: the first in the order is never parked for anybody else.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, Protocol

from axon.domain.share import cost

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
    """The least served tenant first: virtual token counters (VTC) after Sheng et al. (OSDI 2024).

    A tenant's counter rises by its served tokens divided by its weight. The counter of a tenant that returns from idle
    is lifted to the smallest counter of the active tenants, and that of a tenant which has nothing waiting to at most
    ``lead`` below those which have: nobody saves up a claim to the whole machine.

    A tenant's share of the slots goes before its counter, within bounds: a tenant whose counter is ahead of another's
    by more than ``lead`` takes no slot before it.
    """

    def __init__(self, *, lead: float = 8192.0) -> None:
        self._lead = lead
        self._served: dict[str, float] = {}
        self._num_here: Counter[str] = Counter()
        self._level = 0.0
        """The least value of a new counter; it never falls."""

    def served(self, tenant: str) -> float:
        """The tenant's counter, in tokens over weight."""
        served = self._served.get(tenant, 0.0)
        return served if tenant in self._num_here else max(served, self._level)

    def arrive(self, claim: Claim, waiting: Collection[str] = ()) -> None:
        """Lifts the tenant's counter if this is its only sequence, or its only one that waits while others' do."""
        if claim.tenant not in self._num_here:
            self._raise_level()
            self._served[claim.tenant] = self.served(claim.tenant)
        if waiting and claim.tenant not in waiting:
            least = min(self._served[tenant] for tenant in waiting) - self._lead
            self._served[claim.tenant] = max(self._served[claim.tenant], least)
        self._num_here[claim.tenant] += 1

    def leave(self, claim: Claim) -> None:
        """Forgets idle tenants whose counter is not above the level: on return they would be lifted to it anyway."""
        self._num_here[claim.tenant] -= 1
        if not self._num_here[claim.tenant]:
            del self._num_here[claim.tenant]
            if not self._num_here:
                self._level = max(self._level, self._served[claim.tenant])
        self._raise_level()
        gone = [tenant for tenant in self._served if tenant not in self._num_here]
        for tenant in gone:
            if self._served[tenant] <= self._level:
                del self._served[tenant]

    def charge(self, claim: Claim, *, prefilled: int = 0, emitted: int = 0, cached: int = 0) -> None:
        """Raises the tenant's counter."""
        self._served[claim.tenant] += cost(prefilled=prefilled, cached=cached, emitted=emitted) / claim.weight

    def rank(self, claim: Claim) -> Rank:
        """Priority, then the tenant's counter, then arrival."""
        return (-claim.priority, self._served[claim.tenant], claim.arrival)

    def may_overtake(self, claim: Claim, other: Claim) -> bool:
        """Whether the tenant's counter is at most ``lead`` ahead of the other's."""
        return self._served[claim.tenant] <= self._served[other.tenant] + self._lead

    def _raise_level(self) -> None:
        if self._num_here:
            self._level = max(self._level, min(self._served[tenant] for tenant in self._num_here))


def make_policy(name: PolicyName) -> Policy:
    """The policy of that name."""
    return Fair() if name == "fair" else FirstCome()
