"""The twin of the buckets: rates by continuous refill, crowds by expiry. Forgets a bucket that is full again."""

import math
from collections import Counter
from typing import NamedTuple

from axon.adapters.live.expiring import Expiring
from axon.ports.live import Taken
from axon.runtime.clock import Clock

_CLOCK_ERROR_MS = 1e-3
"""A float of Unix time is good to a quarter of a microsecond."""


class _Level(NamedTuple):
    amount: float
    at: float
    refill_per_s: float


class MemoryBuckets:
    """Above ``max_entries`` the buckets nearest to full and the members nearest to their end are forgotten first."""

    def __init__(self, clock: Clock, *, max_entries: int = 1_000_000) -> None:
        self._clock = clock
        self._levels: Expiring[str, _Level] = Expiring(clock, max_entries=max_entries)
        self._members: Expiring[tuple[str, str], None] = Expiring(clock, max_entries=max_entries)
        self._sizes: Counter[str] = Counter()

    async def take(self, key: str, cost: float, *, capacity: float, refill_per_s: float) -> Taken:
        amount = self._amount(key, capacity)
        granted = cost <= amount
        if granted:
            amount -= cost
        self._keep(key, amount, capacity, refill_per_s)
        retry_after_s = 0.0 if granted else _wait_s(cost, amount, capacity, refill_per_s)
        return Taken(granted=granted, remaining=amount, retry_after_s=retry_after_s)

    async def give(self, key: str, amount: float, *, capacity: float) -> None:
        level = self._levels.get(key)
        if level is not None:
            self._keep(key, self._amount(key, capacity) + amount, capacity, level.refill_per_s)

    async def enter(self, crowd: str, member: str, *, limit: int, ttl_s: float) -> bool:
        self._forget(self._members.sweep())
        is_in = (crowd, member) in self._members
        if not is_in and self._sizes[crowd] >= limit:
            self._trim(crowd)
            return False
        self._sizes[crowd] += not is_in
        self._forget(self._members.put((crowd, member), None, ttl_s))
        return True

    async def leave(self, crowd: str, member: str) -> bool:
        self._forget(self._members.sweep())
        if (crowd, member) not in self._members:
            return False
        self._members.pop((crowd, member))
        self._forget([((crowd, member), None)])
        return True

    async def count(self, crowd: str) -> int:
        self._forget(self._members.sweep())
        return self._sizes.get(crowd, 0)

    def lose_everything(self) -> None:
        """What a restart of the service does; for tests."""
        self._levels.clear()
        self._members.clear()
        self._sizes.clear()

    def _amount(self, key: str, capacity: float) -> float:
        level = self._levels.get(key)
        if level is None:
            return capacity
        return min(capacity, level.amount + (self._clock.monotonic() - level.at) * level.refill_per_s)

    def _keep(self, key: str, amount: float, capacity: float, refill_per_s: float) -> None:
        """A full bucket and a missing one are the same, so a bucket lives only until it is full."""
        if amount >= capacity:
            self._levels.pop(key)
            return
        full_in_s = (capacity - amount) / refill_per_s if refill_per_s > 0 else math.inf
        self._levels.put(key, _Level(amount, self._clock.monotonic(), refill_per_s), full_in_s)

    def _forget(self, gone: list[tuple[tuple[str, str], None]]) -> None:
        for (crowd, _), _ in gone:
            self._sizes[crowd] -= 1
            self._trim(crowd)

    def _trim(self, crowd: str) -> None:
        if self._sizes[crowd] <= 0:
            del self._sizes[crowd]


def _wait_s(cost: float, amount: float, capacity: float, refill_per_s: float) -> float:
    """Rounded up to the millisecond, so that waiting so long is enough; infinite when no wait would be."""
    if cost > capacity or refill_per_s <= 0:
        return math.inf
    return math.ceil((cost - amount) / refill_per_s * 1000 + _CLOCK_ERROR_MS) / 1000
