"""The presences on Redis: a hash per deployment, a field with an expiry time per worker. Knows no gateway.

Redis before 7.4 cannot expire a field, so each field holds its expiry time by the server's clock.
"""

from collections.abc import Sequence

import msgspec

from axon.adapters.live.redis.client import RedisClient, milliseconds
from axon.adapters.live.redis.scripts import load
from axon.domain.presence import Presence
from axon.domain.wire import decode, encode

_APPEAR, _PRESENT, _DISAPPEAR = load("appear"), load("present"), load("disappear")


class RedisPresences:
    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def put(self, presence: Presence, *, ttl_s: float) -> bool:
        said = (presence.worker, presence.incarnation, encode(presence), milliseconds(ttl_s))
        return bool(await self._client.run(_APPEAR, [self._key(presence.deployment.name)], *said))

    async def all(self, deployment: str) -> Sequence[Presence]:
        found: list[bytes] = await self._client.run(_PRESENT, [self._key(deployment)])
        return sorted(_readable(found), key=lambda presence: presence.worker)

    async def drop(self, presence: Presence) -> None:
        key = self._key(presence.deployment.name)
        await self._client.run(_DISAPPEAR, [key], presence.worker, presence.incarnation)

    def _key(self, deployment: str) -> str:
        return self._client.key("workers", deployment)


def _readable(bodies: Sequence[bytes]) -> list[Presence]:
    """Decodes an announcement; None for one that cannot be decoded, so that the others are still seen."""
    found = []
    for body in bodies:
        try:
            found.append(decode(Presence, body))
        except (msgspec.DecodeError, ValueError, TypeError):
            continue
    return found
