"""Carries what tenants are served here over to the counters of deployments whose engines share these cores.

Two deployments on one machine would otherwise be two whole shares for a tenant that uses both. While a tenant is active
at a neighbour, what it is served here raises its counter there too, in the neighbour's own unit: the seconds that the
engines needed for a unit of cost are known of both. A tenant that is idle there owes nothing when it comes.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from axon.ports.live import Shares
from axon.worker.queue.served import LEVEL

ACTIVE_S = 5.0
"""Seconds for which a tenant counts as active after a worker has last said so."""
_SECONDS, _COST = "seconds", "cost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The steps of a pool's engines, summed up."""

    seconds: float = 0.0
    cost: float = 0.0
    """In units of one computed prompt token of that deployment."""


def units_of_other(own: Work, other: Work) -> float:
    """How many units of the other pool take as long as one of ours; 1 while either is unknown."""
    if min(own.seconds, own.cost, other.seconds, other.cost) <= 0:
        return 1.0
    return (own.seconds / own.cost) / (other.seconds / other.cost)


def carried_over(
    amounts: Mapping[str, float], active_at: Mapping[str, float], now: float, units: float
) -> dict[str, float]:
    """What a neighbour charges its tenants for ``amounts`` served here: those alone that were active there lately."""
    return {
        tenant: amount * units
        for tenant, amount in amounts.items()
        if amount > 0 and now - active_at.get(tenant, -ACTIVE_S) < ACTIVE_S
    }


class Neighbours:
    """``worked`` and ``served`` as the engine computes; ``exchange`` after each exchange of the pool's own counters."""

    def __init__(
        self, shares: Shares, pool: str, others: Callable[[], Collection[str]], now: Callable[[], float]
    ) -> None:
        """``others`` returns the pools on the same cores, ``now`` the Unix time."""
        self._shares, self._pool, self._now = shares, pool, now
        self._others = others
        self._seconds = self._cost = 0.0

    def worked(self, seconds: float) -> None:
        """The engine's step took this long."""
        self._seconds += seconds

    def served(self, cost: float) -> None:
        """A tenant was served this much, whatever its weight."""
        self._cost += cost

    async def exchange(self, amounts: Mapping[str, float], active: Collection[str]) -> None:
        """Says who is active here, and charges ``amounts`` at the neighbours."""
        others = sorted(set(self._others()) - {self._pool})
        if not others:
            return
        now, shares = self._now(), self._shares
        # A counter that is lifted to the time and raised by nothing holds the latest time that any worker wrote.
        await shares.charge(_active(self._pool), dict.fromkeys(active, 0.0), floor=now)
        work = {_SECONDS: self._seconds, _COST: self._cost}
        self._seconds = self._cost = 0.0
        own = _work(await shares.charge(_worked(self._pool), work, asked=list(work)))
        for other in others:
            active_at = await shares.counters(_active(other), sorted(amounts))
            if not carried_over(amounts, active_at, now, 1.0):
                continue
            theirs = _work(await shares.counters(_worked(other), list(work)))
            charged = carried_over(amounts, active_at, now, units_of_other(own, theirs))
            level = (await shares.counters(other, [LEVEL])).get(LEVEL, 0.0)
            await shares.charge(other, charged, floor=level)


def _work(found: Mapping[str, float]) -> Work:
    return Work(seconds=found.get(_SECONDS, 0.0), cost=found.get(_COST, 0.0))


def _active(pool: str) -> str:
    return f"{pool}|active"


def _worked(pool: str) -> str:
    return f"{pool}|work"
