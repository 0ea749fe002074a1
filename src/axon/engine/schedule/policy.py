"""Whose turn it is: one order for who starts next and, read backwards, for who is parked first. Knows no blocks.

Pure: claims in, ranks out, and no clock. The same order both ways is what keeps the scheduler from going round in
circles: the first in the order is never parked for anybody else.
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
    """Rises from sequence to sequence."""
    tenant: str = ""
    weight: float = 1.0
    """The tenant's share, measured against the others'."""
    reserved: float = 0.0
    """Share of the slots that is the tenant's whenever it asks."""
    priority: int = 0
    """A higher one goes before every lower one."""


class Policy(Protocol):
    """Orders claims."""

    def arrive(self, claim: Claim, waiting: Collection[str] = ()) -> None:
        """The sequence is here, waiting, beside others of these tenants."""
        ...

    def leave(self, claim: Claim) -> None:
        """The sequence has ended or was given up."""
        ...

    def charge(self, claim: Claim, *, prefilled: int = 0, emitted: int = 0, cached: int = 0) -> None:
        """The sequence was served these tokens: computed of its prompt, drawn, or found in the cache."""
        ...

    def rank(self, claim: Claim) -> Rank:
        """The smaller, the sooner served and the later parked; no two claims rank the same."""
        ...

    def may_overtake(self, claim: Claim, other: Claim) -> bool:
        """Whether a claim whose tenant is short of its part of the slots may go before the other, against the order."""
        ...


class FirstCome:
    """In the order of arrival, within a priority."""

    def arrive(self, claim: Claim, waiting: Collection[str] = ()) -> None:
        """Nothing to remember."""

    def leave(self, claim: Claim) -> None:
        """Nothing to remember."""

    def charge(self, claim: Claim, *, prefilled: int = 0, emitted: int = 0, cached: int = 0) -> None:
        """Service does not matter."""

    def rank(self, claim: Claim) -> Rank:
        """Priority, then arrival."""
        return (-claim.priority, claim.arrival)

    def may_overtake(self, claim: Claim, other: Claim) -> bool:
        """Slots are nobody's part."""
        return False


class Fair:
    """The least served tenant first: a virtual token counter for each, after Sheng et al. (OSDI 2024).

    A counter rises by the tokens served over the tenant's weight. Who comes back from idling is lifted to the smallest
    counter of those who are here, and who has not waited, to at most a ``lead`` below those who have: nobody saves up a
    claim to the whole machine.

    A tenant's part of the slots comes before its counter, within bounds: who is ahead of another by more than the lead
    takes no slot before it.
    """

    def __init__(self, *, lead: float = 8192.0) -> None:
        self._lead = lead
        self._served: dict[str, float] = {}
        self._num_here: Counter[str] = Counter()
        self._level = 0.0
        """Where a counter starts at least; it never falls."""

    def served(self, tenant: str) -> float:
        """The tenant's counter."""
        served = self._served.get(tenant, 0.0)
        return served if tenant in self._num_here else max(served, self._level)

    def arrive(self, claim: Claim, waiting: Collection[str] = ()) -> None:
        """Lifts the tenant if this is its only sequence, or the only one that waits while others' do."""
        if claim.tenant not in self._num_here:
            self._raise_level()
            self._served[claim.tenant] = self.served(claim.tenant)
        if waiting and claim.tenant not in waiting:
            least = min(self._served[tenant] for tenant in waiting) - self._lead
            self._served[claim.tenant] = max(self._served[claim.tenant], least)
        self._num_here[claim.tenant] += 1

    def leave(self, claim: Claim) -> None:
        """Forgets a tenant that has gone as soon as a lift would make up for what is forgotten."""
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
        """Not if its tenant was served much more."""
        return self._served[claim.tenant] <= self._served[other.tenant] + self._lead

    def _raise_level(self) -> None:
        if self._num_here:
            self._level = max(self._level, min(self._served[tenant] for tenant in self._num_here))


def make_policy(name: PolicyName) -> Policy:
    """The policy of that name."""
    return Fair() if name == "fair" else FirstCome()
