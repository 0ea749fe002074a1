"""Samples of rollouts on their way from gateways to control's leader, in ``live``. Knows no turn and no verdict.

Every gateway puts its cumulative samples of a rollout under a key of its own. ``live`` cannot list keys, so the names
of the gateways are under one more key, to which each gateway adds itself again whenever it is missing.
"""

import msgspec

from axon.domain.registry.samples import Observed, decode, encode
from axon.ports.live import Cache

_TTL_S = 60.0
"""Seconds that a gateway's samples stay without news of it."""
_MOST = 256
"""Largest number of gateways per rollout; of more, those that have added themselves last count."""


class Observations:
    """The samples of all gateways. What is missing in ``live`` comes again with the gateway's next second."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    async def put(self, rollout_id: str, gateway: str, observed: Observed) -> None:
        """Puts a gateway's cumulative samples; the name of a gateway is of one run of its process."""
        await self._cache.put(f"rollout/{rollout_id}/{gateway}", encode(observed), ttl_s=_TTL_S)
        names = await self._names(rollout_id)
        if gateway not in names:
            kept = " ".join([*names, gateway][-_MOST:])
            await self._cache.put(_index(rollout_id), kept.encode(), ttl_s=24 * 3600.0)

    async def all(self, rollout_id: str) -> dict[str, Observed]:
        """The samples that are there, by gateway."""
        found: dict[str, Observed] = {}
        for gateway in await self._names(rollout_id):
            value = await self._cache.get(f"rollout/{rollout_id}/{gateway}")
            if value is not None:
                try:
                    found[gateway] = decode(value)
                except msgspec.DecodeError:  # of a later release
                    continue
        return found

    async def _names(self, rollout_id: str) -> list[str]:
        value = await self._cache.get(_index(rollout_id))
        return value.decode().split() if value else []


def _index(rollout_id: str) -> str:
    return f"rollout/{rollout_id}"
