"""The crowds on Redis: members by the server's clock, each change one script. Knows no limits."""

from axon.adapters.live.redis.client import RedisClient, milliseconds
from axon.adapters.live.redis.scripts import load

_ENTER, _LEAVE, _COUNT = load("enter"), load("leave"), load("count")


class RedisCrowds:
    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def enter(self, crowd: str, member: str, *, limit: int, ttl_s: float) -> bool:
        return bool(await self._client.run(_ENTER, [self._crowd(crowd)], member, limit, milliseconds(ttl_s)))

    async def leave(self, crowd: str, member: str) -> bool:
        return bool(await self._client.run(_LEAVE, [self._crowd(crowd)], member))

    async def count(self, crowd: str) -> int:
        return int(await self._client.run(_COUNT, [self._crowd(crowd)]))

    def _crowd(self, crowd: str) -> str:
        return self._client.key("crowd", crowd)
