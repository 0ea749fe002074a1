"""The cache on Redis: a key per value, expiring by the server's clock. Knows nothing of what it keeps."""

from axon.adapters.live.redis.client import RedisClient, milliseconds


class RedisCache:
    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def get(self, key: str) -> bytes | None:
        value: bytes | None = await self._client.call("GET", self._key(key))
        return value

    async def put(self, key: str, value: bytes, *, ttl_s: float, only_new: bool = False) -> bool:
        only = ("NX",) if only_new else ()
        return bool(await self._client.call("SET", self._key(key), value, "PX", milliseconds(ttl_s), *only))

    async def drop(self, key: str) -> None:
        await self._client.call("DEL", self._key(key))

    def _key(self, key: str) -> str:
        return self._client.key("cache", key)
