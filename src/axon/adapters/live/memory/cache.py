"""Embedded cache: values with a ttl, bounded in bytes; entries that expire soonest are evicted first."""

from axon.adapters.live.memory.expiring import Expiring
from axon.runtime.clock import Clock


class MemoryCache:
    """A value larger than the whole cache is not stored, which to a caller looks like an evicted one."""

    def __init__(self, clock: Clock, *, max_entries: int = 100_000, max_bytes: int = 256 * 2**20) -> None:
        self._max_bytes = max_bytes
        self._values: Expiring[str, bytes] = Expiring(clock, max_entries=max_entries)
        self._num_bytes = 0

    async def get(self, key: str) -> bytes | None:
        return self._values.get(key)

    async def put(self, key: str, value: bytes, *, ttl_s: float, only_new: bool = False) -> bool:
        self._forget(self._values.sweep())
        if only_new and key in self._values:
            return False
        self._drop(key)
        if len(value) <= self._max_bytes:
            self._num_bytes += len(value)
            self._forget(self._values.put(key, value, ttl_s))
            self._bound()
        return True

    async def drop(self, key: str) -> None:
        self._forget(self._values.sweep())
        self._drop(key)

    def lose_everything(self) -> None:
        """Simulates a restart of the service, for tests."""
        self._values.clear()
        self._num_bytes = 0

    def _drop(self, key: str) -> None:
        self._num_bytes -= len(self._values.pop(key) or b"")

    def _bound(self) -> None:
        while self._num_bytes > self._max_bytes and (evicted := self._values.evict()):
            self._forget([evicted])

    def _forget(self, gone: list[tuple[str, bytes]]) -> None:
        self._num_bytes -= sum(len(value) for _, value in gone)
