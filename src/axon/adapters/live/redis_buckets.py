"""The buckets on Redis: rates and crowds by the server's clock, each changed by one script. Knows no limits."""

import math

from axon.adapters.live.redis_client import RedisClient, milliseconds
from axon.adapters.live.redis_scripts import load
from axon.ports.live import Taken

_TAKE, _GIVE = load("take"), load("give")
_ENTER, _LEAVE, _COUNT = load("enter"), load("leave"), load("count")
_LONGEST_MS = milliseconds(366 * 24 * 3600)
"""How long a bucket is kept that refills slowly or never."""
_CLOCK_GRAIN_MS = 1.0
"""A server may stamp what happens in one millisecond alike."""


class RedisBuckets:
    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def take(self, key: str, cost: float, *, capacity: float, refill_per_s: float) -> Taken:
        bucket = self._client.key("bucket", key)
        granted, remaining = await self._client.run(_TAKE, [bucket], cost, capacity, refill_per_s, _LONGEST_MS)
        amount = float(remaining)
        retry_after_s = 0.0 if granted else _wait_s(cost, amount, capacity, refill_per_s)
        return Taken(granted=bool(granted), remaining=amount, retry_after_s=retry_after_s)

    async def give(self, key: str, amount: float, *, capacity: float) -> None:
        await self._client.run(_GIVE, [self._client.key("bucket", key)], amount, capacity, _LONGEST_MS)

    async def enter(self, crowd: str, member: str, *, limit: int, ttl_s: float) -> bool:
        return bool(await self._client.run(_ENTER, [self._crowd(crowd)], member, limit, milliseconds(ttl_s)))

    async def leave(self, crowd: str, member: str) -> bool:
        return bool(await self._client.run(_LEAVE, [self._crowd(crowd)], member))

    async def count(self, crowd: str) -> int:
        return int(await self._client.run(_COUNT, [self._crowd(crowd)]))

    def _crowd(self, crowd: str) -> str:
        return self._client.key("crowd", crowd)


def _wait_s(cost: float, amount: float, capacity: float, refill_per_s: float) -> float:
    """Rounded up, so that waiting so long is enough; infinite when no wait would be."""
    if cost > capacity or refill_per_s <= 0:
        return math.inf
    return math.ceil((cost - amount) / refill_per_s * 1000 + _CLOCK_GRAIN_MS) / 1000
