"""When each deployment was last asked, in ``live``: gateways note it, control reads how long one has been idle.

What is missing is unknown, because ``live`` can lose its memory: whoever finds it missing begins the time anew, so that
a deployment stays warm for its whole idle time after a loss.
"""

from axon.ports.live import Cache

_TTL_S = 30 * 24 * 3600.0
"""Seconds for which a note stays; a deployment whose note has expired is timed anew."""


class LastAsked:
    """The time of the last request for each deployment."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    async def put(self, deployment: str, at: float) -> None:
        """Notes that the deployment was asked at this Unix time."""
        await self._cache.put(_key(deployment), repr(at).encode(), ttl_s=_TTL_S)

    async def of(self, deployment: str, *, now: float) -> float:
        """Unix time of the last request; ``now``, which is then noted, where none is known."""
        value = await self._cache.get(_key(deployment))
        if value is None and not await self._cache.put(
            _key(deployment), repr(now).encode(), ttl_s=_TTL_S, only_new=True
        ):
            value = await self._cache.get(_key(deployment))  # a gateway was faster
        try:
            return now if value is None else float(value)
        except ValueError:  # of a later release
            return now


def _key(deployment: str) -> str:
    return f"asked/{deployment}"
