"""The embedded queue: lanes in this process's memory, lost with the process. Knows bodies, no jobs.

A ``MemoryBroker`` holds the lanes and outlives its takers; a ``MemoryQueue`` is one taker's connection to it. Unacked
deliveries return to their lane when the connection closes, as when a worker dies; those from an own lane return to
their tenant's lane.
"""

import itertools
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from axon.errors import DependencyDown
from axon.ports.queue import LANE_UNKNOWN, OWN_MAX_WAITING, OWN_TTL_S, Delivery
from axon.runtime.clock import Clock, SystemClock


class MemoryBroker:
    """The lanes, shared by every connection of the process."""

    def __init__(self, *, max_waiting: int = 100_000, clock: Clock | None = None) -> None:
        self.max_waiting = max_waiting
        self._clock = clock or SystemClock()
        self._lanes: dict[str, deque[Delivery]] = {}
        self._own: dict[str, deque[tuple[float, Delivery]]] = {}
        """By own lane: the waiting jobs, each with the monotonic time at which it moves to its tenant's lane."""
        self._tags = itertools.count(1)

    def connect(self) -> "MemoryQueue":
        """A new connection, still to be opened."""
        return MemoryQueue(self)

    def declare(self, lanes: Sequence[str]) -> None:
        for lane in lanes:
            self._lanes.setdefault(lane, deque())

    def publish(self, lane: str, body: bytes) -> None:
        waiting = self._lanes.get(lane)
        if waiting is None:
            raise DependencyDown(f"Lane {lane!r} was never declared.", code=LANE_UNKNOWN)
        if len(waiting) >= self.max_waiting:
            raise DependencyDown(f"Lane {lane!r} is full.", code="queue_full")
        waiting.append(Delivery(tag=0, lane=lane, body=body, redelivered=False))

    def declare_own(self, own: str) -> None:
        self._own.setdefault(own, deque())

    def offer(self, own: str, lane: str, body: bytes) -> bool:
        self._sweep()
        waiting = self._own.get(own)
        if waiting is None or len(waiting) >= OWN_MAX_WAITING or lane not in self._lanes:
            return False
        delivery = Delivery(tag=0, lane=lane, body=body, redelivered=False, own=True)
        waiting.append((self._clock.monotonic() + OWN_TTL_S, delivery))
        return True

    def take(self, lanes: Sequence[str]) -> Delivery | None:
        self._sweep()
        for lane in lanes:
            if offered := self._own.get(lane):
                return replace(offered.popleft()[1], tag=next(self._tags))
            if waiting := self._lanes.get(lane):
                return replace(waiting.popleft(), tag=next(self._tags))
        return None

    def put_first(self, delivery: Delivery) -> None:
        """Returns a delivery to the front of its lane, beyond the lane's bound too, because a refusal would lose it."""
        self._lanes[delivery.lane].appendleft(replace(delivery, redelivered=True, own=False))

    def depth(self, lane: str) -> int:
        self._sweep()
        return len(self._lanes.get(lane, ())) + len(self._own.get(lane, ()))

    def _sweep(self) -> None:
        """Moves jobs that have waited in an own lane for too long to their tenant's lane."""
        now = self._clock.monotonic()
        for waiting in self._own.values():
            while waiting and waiting[0][0] <= now:
                delivery = waiting.popleft()[1]
                self._lanes[delivery.lane].append(replace(delivery, own=False))


class MemoryQueue:
    """One taker's connection. Delivery tags are valid on their own connection only."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker
        self._unacked: dict[int, Delivery] = {}
        self._open = False

    def beside(self) -> "MemoryQueue":
        """Another taker's connection to the same lanes, still to be opened."""
        return self._broker.connect()

    async def open(self) -> None:
        self._open = True

    async def aclose(self) -> None:
        """Returns everything unacked to the front of its lane, in the order it was taken."""
        self._open = False
        for delivery in reversed(self._unacked.values()):
            self._broker.put_first(delivery)
        self._unacked.clear()

    async def declare(self, lanes: Sequence[str]) -> None:
        self._connected().declare(lanes)

    async def publish(self, lane: str, body: bytes) -> None:
        self._connected().publish(lane, body)

    async def declare_own(self, own: str) -> None:
        self._connected().declare_own(own)

    async def offer(self, own: str, lane: str, body: bytes) -> bool:
        return self._connected().offer(own, lane, body)

    async def take(self, lanes: Sequence[str]) -> Delivery | None:
        delivery = self._connected().take(lanes)
        if delivery is not None:
            self._unacked[delivery.tag] = delivery
        return delivery

    async def ack(self, delivery: Delivery) -> None:
        self._connected()
        self._unacked.pop(delivery.tag, None)

    async def give_back(self, delivery: Delivery) -> None:
        broker = self._connected()
        if held := self._unacked.pop(delivery.tag, None):
            broker.put_first(held)

    async def depths(self, lanes: Sequence[str]) -> Mapping[str, int]:
        broker = self._connected()
        return {lane: broker.depth(lane) for lane in lanes}

    def _connected(self) -> MemoryBroker:
        if not self._open:
            raise DependencyDown("The queue connection is closed.")
        return self._broker
