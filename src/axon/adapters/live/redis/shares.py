"""The shares on Redis: a hash per pool, a counter per tenant. Knows no policy: the caller gives the floor."""

from collections.abc import Mapping, Sequence

from axon.adapters.live.redis.client import RedisClient, milliseconds
from axon.adapters.live.redis.scripts import load

_CHARGE = load("charge")
_IDLE_MS = milliseconds(7 * 24 * 3600)
_KEEP = 0.9


class RedisShares:
    """Above ``max_tenants`` in a pool the lowest counters are deleted; a pool without a charge for a week expires."""

    def __init__(self, client: RedisClient, *, max_tenants: int = 100_000) -> None:
        self._client = client
        self._max_tenants = max_tenants

    async def charge(
        self, pool: str, amounts: Mapping[str, float], *, floor: float = 0.0, asked: Sequence[str] = ()
    ) -> Mapping[str, float]:
        if not amounts:
            return await self.counters(pool, asked)
        num_kept = max(1, int(self._max_tenants * _KEEP))
        flat = [part for pair in amounts.items() for part in pair]
        bounds = (_IDLE_MS, self._max_tenants, num_kept, floor)
        found = await self._client.run(_CHARGE, [self._pool(pool)], *bounds, len(asked), *asked, *flat)
        return _known(asked, found)

    async def counters(self, pool: str, tenants: Sequence[str]) -> Mapping[str, float]:
        if not tenants:
            return {}
        found: Sequence[bytes | None] = await self._client.call("HMGET", self._pool(pool), *tenants)
        return _known(tenants, found)

    def _pool(self, pool: str) -> str:
        return self._client.key("shares", pool)


def _known(tenants: Sequence[str], found: Sequence[bytes | None]) -> Mapping[str, float]:
    return {name: float(counter) for name, counter in zip(tenants, found, strict=True) if counter is not None}
