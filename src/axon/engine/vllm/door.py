"""The door before vLLM: what waits, and who is let in next. Fair over tenants; no I/O, no clock.

vLLM serves what it has as it likes. So it is given no more sequences than it has slots, and each free slot goes to the
tenant that holds less than its share of them, and among those to the one that was served least.
"""

from collections import Counter
from collections.abc import Iterable

from axon.domain.fairness.share import Want, short_of
from axon.engine.protocol.messages import Add
from axon.engine.schedule.policy import Claim, Policy, Rank

_STANDS_STILL = 0.5
"""Less than the distance between two priorities."""


class Door:
    """The sequences that wait and those that are inside, up to a number of slots."""

    def __init__(self, num_slots: int, policy: Policy) -> None:
        self._num_slots, self._policy = num_slots, policy
        self._num_arrived = 0
        self._claims: dict[str, Claim] = {}
        self.waiting: dict[str, Add] = {}
        self.inside: dict[str, Add] = {}

    def arrive(self, add: Add) -> None:
        """Takes in a sequence, which waits."""
        self._num_arrived += 1
        claim = Claim(
            arrival=self._num_arrived,
            tenant=add.tenant,
            weight=add.weight,
            reserved=add.reserved,
            priority=add.priority,
        )
        self._policy.arrive(claim, {each.tenant for each in self.waiting.values()})
        self._claims[add.id], self.waiting[add.id] = claim, add

    def leave(self, ids: Iterable[str]) -> list[str]:
        """Forgets sequences; returns those of them that were inside. Unknown ids are ignored."""
        were_inside = []
        for id in ids:
            if (claim := self._claims.pop(id, None)) is not None:
                self._policy.leave(claim)
                self.waiting.pop(id, None)
                if self.inside.pop(id, None) is not None:
                    were_inside.append(id)
        return were_inside

    def charge(self, id: str, *, prefilled: int, cached: int, emitted: int) -> None:
        """Charges the sequence's tenant for what was computed for it."""
        self._policy.charge(self._claims[id], prefilled=prefilled, cached=cached, emitted=emitted)

    def let_in(self) -> Add | None:
        """Gives the next free slot to a waiting sequence; None without either."""
        if not self.waiting or len(self.inside) >= self._num_slots:
            return None
        add = self.waiting.pop(self._next())
        self.inside[add.id] = add
        return add

    def _next(self) -> str:
        """The waiting sequence that comes next."""
        first = min(self.waiting, key=self._rank)
        for tenant in short_of(self._num_slots, self._wants()):
            due = min((id for id, add in self.waiting.items() if add.tenant == tenant), key=self._rank)
            if self._policy.may_overtake(self._claims[due], self._claims[first]) and self._is_no_lower(due, first):
                return due
        return first

    def _is_no_lower(self, id: str, than: str) -> bool:
        """A share of the slots goes before what was served, and not before a priority."""
        return self._claims[id].priority >= self._claims[than].priority

    def _rank(self, id: str) -> Rank:
        """The policy's rank, but an interrupted stream goes before all others of its priority."""
        rank = self._policy.rank(self._claims[id])
        return (rank[0] - _STANDS_STILL, *rank[1:]) if self.waiting[id].interrupted else rank

    def _wants(self) -> dict[str, Want]:
        held = Counter(add.tenant for add in self.inside.values())
        waiting = Counter(add.tenant for add in self.waiting.values())
        claims = {claim.tenant: claim for claim in self._claims.values()}
        return {
            tenant: Want(held=held[tenant], waiting=waiting[tenant], weight=claim.weight, reserved=claim.reserved)
            for tenant, claim in claims.items()
        }
