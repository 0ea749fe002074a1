"""Embedded crowds: members with an expiry."""

from collections import Counter

from axon.adapters.live.memory.expiring import Expiring
from axon.runtime.clock import Clock


class MemoryCrowds:
    """Above ``max_entries`` the members that expire soonest are evicted."""

    def __init__(self, clock: Clock, *, max_entries: int = 1_000_000) -> None:
        self._members: Expiring[tuple[str, str], None] = Expiring(clock, max_entries=max_entries)
        self._sizes: Counter[str] = Counter()

    async def enter(self, crowd: str, member: str, *, limit: int, ttl_s: float) -> bool:
        self._forget(self._members.sweep())
        is_in = (crowd, member) in self._members
        if not is_in and self._sizes[crowd] >= limit:
            self._trim(crowd)
            return False
        self._sizes[crowd] += not is_in
        self._forget(self._members.put((crowd, member), None, ttl_s))
        return True

    async def leave(self, crowd: str, member: str) -> bool:
        self._forget(self._members.sweep())
        if (crowd, member) not in self._members:
            return False
        self._members.pop((crowd, member))
        self._forget([((crowd, member), None)])
        return True

    async def count(self, crowd: str) -> int:
        self._forget(self._members.sweep())
        return self._sizes.get(crowd, 0)

    def lose_everything(self) -> None:
        """Simulates a restart of the service, for tests."""
        self._members.clear()
        self._sizes.clear()

    def _forget(self, gone: list[tuple[tuple[str, str], None]]) -> None:
        for (crowd, _), _ in gone:
            self._sizes[crowd] -= 1
            self._trim(crowd)

    def _trim(self, crowd: str) -> None:
        if self._sizes[crowd] <= 0:
            del self._sizes[crowd]
