"""Who gets a slot next, and who yields one for it: tenants short of their part first, then the policy's order. Pure.

Knows no blocks. A slot passes from one tenant to another only where the one has a whole slot beyond its part and the
other lacks a whole one, so that no slot goes to and fro. Inside a tenant a lower priority yields to a higher.
"""

from collections import Counter
from collections.abc import Sequence as Several
from dataclasses import dataclass
from itertools import chain

from axon.domain.share import Want, beyond, most_over, short_of
from axon.engine.schedule.policy import Claim, Policy, Rank
from axon.engine.schedule.sequence import Sequence

FEWEST_TOKENS = 8
"""A sequence that got a slot is served so many before it yields it."""

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Move:
    """A waiting sequence that is to start."""

    entering: Sequence
    yielding: Sequence | None = None
    """Whose slot it gets, where none is free."""
    is_due: bool = False
    """Its tenant is short of its part: the sequence goes before others whatever its rank."""


class Line:
    """The line in front of the slots, for one step."""

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
        """Each tenant's newest, which says what the tenant is entitled to."""
        for sequence in chain(running, waiting):
            known = self._claims.get(sequence.claim.tenant)
            if known is None or known.arrival < sequence.arrival:
                self._claims[sequence.claim.tenant] = sequence.claim
        self.is_strict = False
        """Nobody goes before the first by rank, which lacks something else than a slot; but for what is reserved."""
        self.is_closed = False
        """Not even what is reserved."""
        self.is_quiet = True
        """Nobody enters before somebody comes or goes."""

    @property
    def first(self) -> Sequence:
        """The first by rank of those who wait."""
        return self._waiting[0]

    def head(self) -> Move | None:
        """Who is to start next; None: nobody."""
        if not self._waiting:
            return None
        if self._num_free > 0:
            return self._first()
        return self._exchange() or self._exchange_inside()

    def take(self, move: Move) -> None:
        """The head of the line has got its slot."""
        self._drop(move.entering)
        self._num_held[move.entering.claim.tenant] += 1
        if move.yielding is None:
            self._num_free -= 1
        else:
            self._running.remove(move.yielding)
            self._num_held[move.yielding.claim.tenant] -= 1
            self._num_waiting[move.yielding.claim.tenant] += 1

    def leave(self, move: Move) -> None:
        """The head of the line cannot start now, and is not waited for."""
        self._drop(move.entering)
        self.is_quiet = False

    def _drop(self, sequence: Sequence) -> None:
        self._waiting.remove(sequence)
        self._num_waiting[sequence.claim.tenant] -= 1

    def _rank(self, sequence: Sequence) -> Rank:
        return self._policy.rank(sequence.claim)

    def _first(self) -> Move:
        for sequence in self._firsts_of(short_of(self._num_slots, self._wants()) if len(self._claims) > 1 else []):
            if self._passes(sequence, self.first):
                return Move(sequence, is_due=True)
        return Move(self.first)

    def _exchange(self) -> Move | None:
        """Of the tenant that has most beyond its part the newest sequence yields, a lower priority before a higher."""
        wants = self._wants()
        short = short_of(self._num_slots, wants) if len(wants) > 1 else []
        over = most_over(self._num_slots, wants) if short else None
        if over is None:
            return self._claim_reserve(wants, short)
        self.is_quiet = False
        yielding = self._last_of(over)
        if yielding is not None:
            for sequence in self._firsts_of(short):
                if self._passes(sequence, yielding):
                    return Move(sequence, yielding, is_due=True)
        return None

    def _claim_reserve(self, wants: dict[str, Want], short: list[str]) -> Move | None:
        """What is reserved is taken also where nobody has a whole slot too much: of many with one each, one yields."""
        firsts = self._firsts_of([tenant for tenant in short if self._has_reserve(tenant)])
        for tenant in beyond(self._num_slots, wants) if firsts else ():
            self.is_quiet = False
            if (yielding := self._last_of(tenant)) is not None:
                return Move(firsts[0], yielding, is_due=True)
        return None

    def _exchange_inside(self) -> Move | None:
        lowest = min((sequence.claim.priority for sequence in self._running), default=0)
        tried: set[str] = set()
        for sequence in self._waiting:
            claim = sequence.claim
            if claim.priority <= lowest:
                break
            if claim.tenant not in tried:
                tried.add(claim.tenant)
                yielding = self._last_of(claim.tenant)
                if yielding is not None and yielding.claim.priority < claim.priority:
                    return Move(sequence, yielding)
        return None

    def _firsts_of(self, tenants: list[str]) -> list[Sequence]:
        """The first of each tenant: those with a reserve first, then by rank."""
        firsts: dict[str, Sequence] = {}
        for sequence in self._waiting:
            if sequence.claim.tenant in tenants:
                firsts.setdefault(sequence.claim.tenant, sequence)
        return sorted(firsts.values(), key=lambda sequence: not self._has_reserve(sequence.claim.tenant))

    def _last_of(self, tenant: str) -> Sequence | None:
        held = [sequence for sequence in self._running if sequence.claim.tenant == tenant]
        served = [sequence for sequence in held if sequence.num_served >= FEWEST_TOKENS]
        if len(served) < len(held):
            self.is_quiet = False
        return max(served, key=lambda sequence: (-sequence.claim.priority, sequence.arrival), default=None)

    def _passes(self, sequence: Sequence, other: Sequence) -> bool:
        if self.is_closed and sequence is not self.first:
            return False
        if self._has_reserve(sequence.claim.tenant):
            return True
        return (not self.is_strict or sequence is self.first) and self._policy.may_pass(sequence.claim, other.claim)

    def _has_reserve(self, tenant: str) -> bool:
        """Whether its next slot is one that is reserved for it."""
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
