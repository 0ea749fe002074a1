"""Off the queue: fills free slots, lane after lane, guided by hints of where jobs are. Knows no engine."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Protocol

import structlog

from axon.dispatch.dispatch import work_channel
from axon.errors import AxonError
from axon.ports.live import Wakeups
from axon.ports.queue import Delivery, Queue

_IDLE_S = 1.0
_RETRY_S = 0.2
_REST_S = 1.0

_logger = structlog.get_logger("axon.worker")


class Taker(Protocol):
    """The worker, as the taking needs it."""

    @property
    def has_room(self) -> bool: ...

    async def start(self, delivery: Delivery) -> None:
        """Deals with a delivery; never raises for what a service does."""


class Taking:
    """Takes while its worker has room, until it is stopped."""

    def __init__(self, *, worker: Taker, deployment: str, lanes: Sequence[str], queue: Queue, wakeups: Wakeups) -> None:
        self._worker, self._deployment = worker, deployment
        self._lanes = tuple(lanes)
        self._queue, self._wakeups = queue, wakeups
        self._hints: dict[str, None] = dict.fromkeys(self._lanes)
        """Lanes that may have jobs."""
        self._woken = asyncio.Event()
        self._is_stopped = False
        self._resting_until = 0.0

    async def open(self) -> None:
        await self._queue.declare(self._lanes)

    def wake(self) -> None:
        """There may be room now."""
        self._woken.set()

    def rest(self) -> None:
        """Leaves what was just given back to the others, for a moment."""
        self._resting_until = asyncio.get_running_loop().time() + _REST_S

    def stop(self) -> None:
        """Takes nothing more."""
        self._is_stopped = True

    @property
    def _is_free(self) -> bool:
        rests = asyncio.get_running_loop().time() < self._resting_until
        return not self._is_stopped and not rests and self._worker.has_room

    async def num_waiting(self) -> int:
        """Jobs in all lanes; one where that cannot be found out."""
        try:
            return sum((await self._queue.depths(self._lanes)).values())
        except AxonError:
            return 1

    async def listen(self) -> None:
        """Wakes the taking: when there is work, and now and then in case a hint was lost."""
        while True:
            self._hints |= dict.fromkeys(self._lanes)  # at the start, and while nobody can be listened to
            self._woken.set()
            with contextlib.suppress(AxonError):
                async with self._wakeups.listen(work_channel(self._deployment)) as listener:
                    while True:
                        lane = await listener.next(_IDLE_S)
                        self._hints |= dict.fromkeys([lane.decode()] if lane else self._lanes)
                        self._woken.set()
            await asyncio.sleep(_RETRY_S)

    async def run(self) -> None:
        """Fills free slots until cancelled."""
        order = self._lanes
        while True:
            await self._woken.wait()
            self._woken.clear()
            while self._hints and self._is_free:
                hints, self._hints = self._hints, {}  # a hint that comes while we look counts for the next look
                try:
                    delivery = await self._queue.take([lane for lane in order if lane in hints])
                except AxonError as error:
                    _logger.warning("take.failed", error=str(error))
                    self._hints |= hints
                    await asyncio.sleep(_RETRY_S)
                    continue
                if delivery is None:
                    continue
                self._hints |= hints
                await self._worker.start(delivery)
                after = self._lanes.index(delivery.lane) + 1
                order = self._lanes[after:] + self._lanes[:after]
