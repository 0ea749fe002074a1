"""The queue in front of the slots: who gets a slot next, and who yields one for it. No I/O, no clock, no blocks.

Tenants that hold fewer slots than their share go first, then the policy's order. A slot passes from one tenant to
another only where one holds a whole slot beyond its share and the other lacks a whole one, so no slot goes back and
forth. Within a tenant a lower priority yields to a higher one. A lower priority yields at once.
"""

from collections import Counter
from collections.abc import Sequence as Several
from dataclasses import dataclass
from itertools import chain

from axon.domain.fairness.share import Want, beyond, most_over, short_of
from axon.engine.schedule.policy import Claim, Policy, Rank
from axon.engine.schedule.sequence import Sequence

MIN_SERVED_TOKENS = 8
"""A sequence that got a slot is served this many tokens before it may have to yield it to one of its own priority or of
a lower one."""

_ROUNDING = 1e-9
_STANDS_STILL = 0.5
"""Less than the distance between two priorities."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A slot for a waiting sequence."""

    entering: Sequence
    yielding: Sequence | None = None
    """The running sequence whose slot it gets; None where a slot is free."""
    is_due: bool = False
    """The tenant holds less than its share of the slots: the sequence goes before others whatever its rank."""


def rank_of(sequence: Sequence, policy: Policy) -> Rank:
    """The policy's rank, but an interrupted stream goes before all others of its priority until it has caught up."""
    rank = policy.rank(sequence.claim)
    return (rank[0] - _STANDS_STILL, *rank[1:]) if sequence.stands_still else rank


class SlotQueue:
    """The waiting sequences in front of the slots, for one step."""

    def __init__(
        self, num_slots: int, policy: Policy, *, running: Several[Sequence], waiting: Several[Sequence]
    ) -> None:
        self._num_slots = num_slots
        self._policy = policy
        self._running = list(running)
        self._num_free = num_slots - len(running)
        self._waiting = sorted(waiting, key=self._rank)
        self._num_held = Counter(sequence.claim.tenant for sequence in running)
        self._num_waiting = Counter(sequence.claim.tenant for sequence in waiting)
        self._claims: dict[str, Claim] = {}
        """Each tenant's newest claim, which says what the tenant is entitled to."""
        for sequence in chain(running, waiting):
            known = self._claims.get(sequence.claim.tenant)
            if known is None or known.arrival < sequence.arrival:
                self._claims[sequence.claim.tenant] = sequence.claim
        self.head_blocks_all = False
        """The first in rank waits for blocks, not for a slot: nobody may overtake it, except into reserved slots."""
        self.head_blocks_reserved = False
        """The first in rank has waited long: nobody may overtake it, not even into reserved slots."""
        self.is_stable = True
        """No slot can change hands until a sequence arrives, leaves or is parked."""

    @property
    def head(self) -> Sequence:
        """The first in rank of the waiting sequences."""
        return self._waiting[0]

    def next_grant(self) -> Grant | None:
        """The slot to give out next; None if nobody gets one."""
        if not self._waiting:
            return None
        if self._num_free > 0:
            return self._free_slot()
        return self._exchange() or self._exchange_within_tenant()

    def accept(self, grant: Grant) -> None:
        """Counts the slot as given to the entering sequence."""
        self._drop(grant.entering)
        self._num_held[grant.entering.claim.tenant] += 1
        if grant.yielding is None:
            self._num_free -= 1
        else:
            self._running.remove(grant.yielding)
            self._num_held[grant.yielding.claim.tenant] -= 1
            self._num_waiting[grant.yielding.claim.tenant] += 1

    def skip(self, grant: Grant) -> None:
        """Passes over the entering sequence, which cannot start in this step."""
        self._drop(grant.entering)
        self.is_stable = False

    def _drop(self, sequence: Sequence) -> None:
        self._waiting.remove(sequence)
        self._num_waiting[sequence.claim.tenant] -= 1

    def _rank(self, sequence: Sequence) -> Rank:
        return rank_of(sequence, self._policy)

    def _free_slot(self) -> Grant:
        for sequence in self._firsts_of(short_of(self._num_slots, self._wants()) if len(self._claims) > 1 else []):
            if self._may_overtake(sequence, self.head):
                return Grant(sequence, is_due=True)
        return Grant(self.head)

    def _exchange(self) -> Grant | None:
        """Takes a slot from the tenant furthest over its share: its newest sequence of the lowest priority yields."""
        wants = self._wants()
        short = short_of(self._num_slots, wants) if len(wants) > 1 else []
        over = most_over(self._num_slots, wants) if short else None
        if over is None:
            return self._claim_reserved(wants, short)
        self.is_stable = False
        for sequence in self._firsts_of(short):
            yielding = self._last_of(over, sequence)
            if yielding is not None and self._may_overtake(sequence, yielding):
                return Grant(sequence, yielding, is_due=True)
        return None

    def _claim_reserved(self, wants: dict[str, Want], short: list[str]) -> Grant | None:
        """Takes a reserved slot even if no tenant is a whole slot over its share: of many with one each, one yields."""
        firsts = self._firsts_of([tenant for tenant in short if self._has_reserve(tenant)])
        for tenant in beyond(self._num_slots, wants) if firsts else ():
            self.is_stable = False
            if (yielding := self._last_of(tenant, firsts[0])) is not None:
                return Grant(firsts[0], yielding, is_due=True)
        return None

    def _exchange_within_tenant(self) -> Grant | None:
        """A tenant's waiting sequence takes the slot of one of its own with a lower priority."""
        lowest = min((sequence.claim.priority for sequence in self._running), default=0)
        tried: set[str] = set()
        for sequence in self._waiting:
            claim = sequence.claim
            if claim.priority <= lowest:
                break
            if claim.tenant not in tried:
                tried.add(claim.tenant)
                yielding = self._last_of(claim.tenant, sequence)
                if yielding is not None and yielding.claim.priority < claim.priority:
                    return Grant(sequence, yielding)
        return None

    def _firsts_of(self, tenants: list[str]) -> list[Sequence]:
        """The first waiting sequence of each tenant: tenants with a free reserve first, then by rank."""
        firsts: dict[str, Sequence] = {}
        for sequence in self._waiting:
            if sequence.claim.tenant in tenants:
                firsts.setdefault(sequence.claim.tenant, sequence)
        return sorted(firsts.values(), key=lambda sequence: not self._has_reserve(sequence.claim.tenant))

    def _last_of(self, tenant: str, entering: Sequence) -> Sequence | None:
        """The tenant's running sequence that yields first to the entering one; None while all were served too few to
        yield. One of a lower priority yields whatever it was served, which is a token at least: it was computed in the
        step in which it got the slot."""
        held = [sequence for sequence in self._running if sequence.claim.tenant == tenant]
        ready = [
            sequence
            for sequence in held
            if sequence.num_served >= MIN_SERVED_TOKENS or sequence.claim.priority < entering.claim.priority
        ]
        if len(ready) < len(held):
            self.is_stable = False
        return max(ready, key=lambda sequence: (-sequence.claim.priority, sequence.arrival), default=None)

    def _may_overtake(self, sequence: Sequence, other: Sequence) -> bool:
        if self.head_blocks_reserved and sequence is not self.head:
            return False
        if self._has_reserve(sequence.claim.tenant):
            return True
        is_free = not self.head_blocks_all or sequence is self.head
        return is_free and self._policy.may_overtake(sequence.claim, other.claim)

    def _has_reserve(self, tenant: str) -> bool:
        """Whether the tenant's next slot is one that is reserved for it."""
        return self._num_held[tenant] + 1 <= self._claims[tenant].reserved * self._num_slots + _ROUNDING

    def _wants(self) -> dict[str, Want]:
        return {
            tenant: Want(
                held=self._num_held[tenant],
                waiting=self._num_waiting[tenant],
                weight=claim.weight,
                reserved=claim.reserved,
            )
            for tenant, claim in self._claims.items()
        }
