"""Embedded shares: one virtual counter per pool and tenant. Knows no policy: the caller gives the floor."""

import heapq
from collections.abc import Mapping, Sequence

_KEEP = 0.9


class MemoryShares:
    """Above ``max_tenants`` in a pool the lowest counters are dropped: a missing counter counts as the minimum, so they
    lose the least."""

    def __init__(self, *, max_tenants: int = 100_000) -> None:
        self._max_tenants = max_tenants
        self._pools: dict[str, dict[str, float]] = {}

    async def charge(
        self, pool: str, amounts: Mapping[str, float], *, floor: float = 0.0, asked: Sequence[str] = ()
    ) -> Mapping[str, float]:
        counters = self._pools.setdefault(pool, {})
        for tenant, amount in amounts.items():
            counters[tenant] = max(floor, counters.get(tenant, 0.0)) + amount
        self._bound(pool)
        return await self.counters(pool, asked)

    async def counters(self, pool: str, tenants: Sequence[str]) -> Mapping[str, float]:
        counters = self._pools.get(pool, {})
        return {tenant: counters[tenant] for tenant in tenants if tenant in counters}

    def lose_everything(self) -> None:
        """Simulates a restart of the service, for tests."""
        self._pools.clear()

    def _bound(self, pool: str) -> None:
        counters = self._pools[pool]
        if len(counters) > self._max_tenants:
            num_kept = max(1, int(self._max_tenants * _KEEP))
            self._pools[pool] = dict(heapq.nlargest(num_kept, counters.items(), key=lambda item: item[1]))
