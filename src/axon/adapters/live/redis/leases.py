"""The leases on Redis: a key per owner that expires by the server's clock. Knows no sweeper.

All keys share one cluster slot with the run id, so that a loss of leases loses the run id too.
"""

import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from axon.adapters.live.redis.client import RedisClient, milliseconds
from axon.adapters.live.redis.scripts import load

_RUN_ID = load("run_id")
_TAG = "{leases}"
_MARKER_MS = milliseconds(30 * 24 * 3600)


class RedisLeases:
    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def hold(self, owner: str, ttl_s: float) -> None:
        await self._client.call("SET", self._key(owner), 1, "PX", milliseconds(ttl_s))

    async def alive(self, owners: Sequence[str]) -> frozenset[str]:
        if not owners:
            return frozenset()
        held = await self._client.call("MGET", *map(self._key, owners))
        return frozenset(owner for owner, lease in zip(owners, held, strict=True) if lease is not None)

    async def drop(self, owner: str) -> None:
        await self._client.call("DEL", self._key(owner))

    async def run_id(self) -> str:
        marker = self._client.key(_TAG, "marker")
        run_id: bytes = await self._client.run(_RUN_ID, [marker], secrets.token_hex(8), _MARKER_MS)
        return run_id.decode()

    def for_thread(self, *, deadline_s: float) -> "Callable[[], AbstractAsyncContextManager[RedisLeases]]":
        @asynccontextmanager
        async def connected() -> AsyncIterator[RedisLeases]:
            client = self._client.another(deadline_s=deadline_s)
            await client.open()
            try:
                yield RedisLeases(client)
            finally:
                await client.aclose()

        return connected

    def _key(self, owner: str) -> str:
        return self._client.key(_TAG, "lease", owner)
