"""Versions that a server could not load, with the reason, in ``live``: whoever loads them writes it, gateways read it.

A version without an entry has no known problem: it was loaded, or nobody has tried for a while.
"""

from axon.ports.live import Cache

_MAX_CHARS = 1000


class LoadProblems:
    """Why versions are not loaded, one reason per version of a deployment."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    async def put(self, deployment: str, version: str, reason: str, *, ttl_s: float) -> None:
        """Says that the version could not be loaded; holds for ``ttl_s`` seconds."""
        value = reason[:_MAX_CHARS].encode(errors="replace") or b"?"
        await self._cache.put(_key(deployment, version), value, ttl_s=ttl_s)

    async def drop(self, deployment: str, version: str) -> None:
        """Forgets the reason, because the version is loaded."""
        await self._cache.drop(_key(deployment, version))

    async def of(self, deployment: str, version: str) -> str:
        """Why the version could not be loaded; empty if nobody says that it could not."""
        value = await self._cache.get(_key(deployment, version))
        return value.decode(errors="replace") if value else ""


def _key(deployment: str, version: str) -> str:
    return f"load-problem/{deployment}/{version}"
