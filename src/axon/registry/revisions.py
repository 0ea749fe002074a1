"""The registry's revision R in ``live``, where followers find it sooner than in the store. Knows no record."""

from axon.errors import DependencyDown
from axon.ports.live import Cache, Wakeups

CHANNEL = "registry"
"""Channel on which a new R is told."""
_KEY = "registry/revision"
_TTL_S = 24 * 3600.0
"""Seconds that R stays in ``live`` without a change; a missing one means: ask the store."""


class Revisions:
    """R in ``live``. It may be missing, or lower than the store's, never higher."""

    def __init__(self, cache: Cache, wakeups: Wakeups) -> None:
        self._cache, self._wakeups = cache, wakeups

    async def tell(self, revision: int) -> bool:
        """Copies a committed R into ``live`` and wakes the followers; False where ``live`` is away: followers then read
        it from the store within a second."""
        try:
            await self.put(revision)
            await self._wakeups.notify(CHANNEL, str(revision).encode())
        except DependencyDown:
            return False
        return True

    async def put(self, revision: int) -> None:
        """Copies R into ``live`` and wakes nobody."""
        await self._cache.put(_KEY, str(revision).encode(), ttl_s=_TTL_S)

    async def read(self) -> int | None:
        """R as ``live`` has it; None when it is missing or cannot be read."""
        value = await self._cache.get(_KEY)
        return int(value) if value is not None and value.isdigit() else None
