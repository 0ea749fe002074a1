"""The pins on Redis: a hash per pin, expiring by the server's clock; each change is one script. Knows no deployment."""

from collections.abc import Sequence

from axon.adapters.live.redis.client import RedisClient, milliseconds
from axon.adapters.live.redis.scripts import load
from axon.domain.session.pin import Pin

_PIN, _MOVE, _CONFIRM = load("pin"), load("move_pin"), load("confirm_pin")
_FIELDS = ("generation", "version", "moved_from", "reason")


class RedisPins:
    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def get(self, key: str) -> Pin | None:
        return _pin(await self._client.call("HMGET", self._key(key), *_FIELDS))

    async def pin(self, key: str, wanted: Pin, *, ttl_s: float) -> Pin:
        values = (wanted.generation, wanted.version, wanted.moved_from, wanted.reason)
        return _pin(await self._client.run(_PIN, [self._key(key)], *values, milliseconds(ttl_s))) or wanted

    async def move(self, key: str, old: Pin, new: Pin, *, ttl_s: float) -> Pin | None:
        values = (old.generation, old.version, new.generation, new.version, new.moved_from, new.reason)
        return _pin(await self._client.run(_MOVE, [self._key(key)], *values, milliseconds(ttl_s)))

    async def confirm(self, key: str, pin: Pin, *, ttl_s: float) -> Pin | None:
        values = (pin.generation, pin.version, milliseconds(ttl_s))
        return _pin(await self._client.run(_CONFIRM, [self._key(key)], *values))

    async def drop(self, key: str) -> None:
        await self._client.call("DEL", self._key(key))

    def _key(self, key: str) -> str:
        return self._client.key("pin", key)


def _pin(values: Sequence[bytes | None]) -> Pin | None:
    """The pin of a hash's fields; None when there is no hash."""
    generation, *names = values
    return None if generation is None else Pin(int(generation), *((name or b"").decode() for name in names))
