"""Measured cold starts of versions, in ``live``: a worker that is ready puts its own, gateways and control read them.

What is missing is unknown: nobody has started the version since ``live`` lost its memory.
"""

import msgspec

from axon.domain.fleet.cold_start import ColdStart
from axon.ports.live import Cache

_TTL_S = 90 * 24 * 3600.0
"""Seconds for which a measurement counts."""


class ColdStarts:
    """The last cold start of each version."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    async def put(self, version: str, measured: ColdStart) -> None:
        """Replaces the version's measurement."""
        await self._cache.put(_key(version), msgspec.msgpack.encode(measured), ttl_s=_TTL_S)

    async def of(self, version: str) -> ColdStart | None:
        """The version's measurement; None while it is unknown."""
        value = await self._cache.get(_key(version))
        if value is None:
            return None
        try:
            return msgspec.msgpack.decode(value, type=ColdStart)
        except msgspec.DecodeError:  # of a later release
            return None


def _key(version: str) -> str:
    return f"cold-start/{version}"
