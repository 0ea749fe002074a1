"""The shares on Redis: a hash per pool, a counter per tenant. Knows no policy: whom to lift is the caller's choice."""

from collections.abc import Mapping

from axon.adapters.live.redis_client import RedisClient, milliseconds
from axon.adapters.live.redis_scripts import load

_CHARGE, _LIFT = load("charge"), load("lift")
_IDLE_MS = milliseconds(7 * 24 * 3600)
_KEEP = 0.9


class RedisShares:
    """Above ``max_tenants`` in a pool the lowest counters go; a pool that nobody charges for a week goes as a whole."""

    def __init__(self, client: RedisClient, *, max_tenants: int = 100_000) -> None:
        self._client = client
        self._max_tenants = max_tenants

    async def charge(self, pool: str, amounts: Mapping[str, float]) -> None:
        if not amounts:
            return
        num_kept = max(1, int(self._max_tenants * _KEEP))
        flat = [part for pair in amounts.items() for part in pair]
        await self._client.run(_CHARGE, [self._pool(pool)], _IDLE_MS, self._max_tenants, num_kept, *flat)

    async def counters(self, pool: str) -> Mapping[str, float]:
        found: Mapping[bytes, bytes] = await self._client.call("HGETALL", self._pool(pool))
        return {tenant.decode(): float(counter) for tenant, counter in found.items()}

    async def lift(self, pool: str, tenant: str, floor: float) -> None:
        await self._client.run(_LIFT, [self._pool(pool)], _IDLE_MS, tenant, floor)

    def _pool(self, pool: str) -> str:
        return self._client.key("shares", pool)
