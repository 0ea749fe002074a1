"""A bounded map whose entries expire. Not thread-safe; an entry may be evicted before it expires.

Ended entries leave in the order they end, a few per call, so that no call walks the whole map.
"""

import heapq
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from axon.runtime.clock import Clock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_SLACK = 64


class Expiring(Generic[K, V]):
    """Key to value, each with its own time to live. Keys must be comparable with each other."""

    def __init__(self, clock: Clock, *, max_entries: int) -> None:
        self._clock = clock
        self._max_entries = max_entries
        self._entries: dict[K, tuple[float, V]] = {}
        self._ends: list[tuple[float, K]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[K]:
        return iter(list(self._entries))

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        return entry[1] if entry is not None and entry[0] > self._clock.monotonic() else None

    def __contains__(self, key: K) -> bool:
        entry = self._entries.get(key)
        return entry is not None and entry[0] > self._clock.monotonic()

    def put(self, key: K, value: V, ttl_s: float) -> list[tuple[K, V]]:
        """Sets a value and its ttl; returns the removed entries, as ``sweep`` does."""
        until = self._clock.monotonic() + ttl_s
        self._entries[key] = (until, value)
        if len(self._ends) > 2 * len(self._entries) + _SLACK:
            self._rebuild()
        else:
            heapq.heappush(self._ends, (until, key))
        return self.sweep()

    def pop(self, key: K) -> V | None:
        entry = self._entries.pop(key, None)
        return entry[1] if entry is not None and entry[0] > self._clock.monotonic() else None

    def sweep(self) -> list[tuple[K, V]]:
        """Removes and returns expired entries, and above the bound those that expire soonest."""
        gone: list[tuple[K, V]] = []
        now = self._clock.monotonic()
        while self._ends and (self._ends[0][0] <= now or len(self._entries) > self._max_entries):
            gone.extend(self._pop_soonest())
        return gone

    def evict(self) -> tuple[K, V] | None:
        """Removes and returns the entry that expires soonest."""
        while self._ends:
            if soonest := self._pop_soonest():
                return soonest[0]
        return None

    def clear(self) -> None:
        self._entries.clear()
        self._ends.clear()

    def _pop_soonest(self) -> list[tuple[K, V]]:
        until, key = heapq.heappop(self._ends)
        entry = self._entries.get(key)
        if entry is None or entry[0] != until:  # renewed or dropped since: this heap entry is stale
            return []
        del self._entries[key]
        return [(key, entry[1])]

    def _rebuild(self) -> None:
        """Drops stale heap entries, so that renewing one key for ever does not grow the heap."""
        self._ends = [(until, key) for key, (until, _) in self._entries.items()]
        heapq.heapify(self._ends)
