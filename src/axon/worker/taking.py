"""Off the queue: fills free slots, lane after lane, guided by hints of where jobs are. Knows no engine.

The worker's own lane comes first, but never twice in a row while another may have a job: whose blocks are held here is
served quickly, and nobody else is kept waiting for it. What is left in the own lane goes to its tenant's lane, where
every lane has its turn.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Protocol

import structlog

from axon.dispatch.dispatch import work_channel
from axon.errors import AxonError
from axon.ports.live import Wakeups
from axon.ports.queue import Delivery, Lanes
from axon.telemetry.metrics import Metrics

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

    def __init__(
        self,
        *,
        worker: Taker,
        deployment: str,
        lanes: Sequence[str],
        own: str,
        queue: Lanes,
        wakeups: Wakeups,
        metrics: Metrics,
    ) -> None:
        self._worker, self._deployment = worker, deployment
        self._lanes = tuple(lanes)
        self._own = own
        self._everywhere = (own, *self._lanes) if own else self._lanes
        self._order = self._lanes
        self._is_others_turn = False
        self._queue, self._wakeups, self._metrics = queue, wakeups, metrics
        self._hints: dict[str, None] = dict.fromkeys(self._everywhere)
        """Lanes that may have jobs."""
        self._woken = asyncio.Event()
        self._is_stopped = False
        self._resting_until = 0.0

    async def open(self) -> None:
        await self._queue.declare(self._lanes)
        if self._own:
            await self._queue.declare_own(self._own)

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
            self._hints |= dict.fromkeys(self._everywhere)  # at the start, and while nobody can be listened to
            self._woken.set()
            with contextlib.suppress(AxonError):
                async with self._wakeups.listen(work_channel(self._deployment)) as listener:
                    while True:
                        lane = await listener.next(_IDLE_S)
                        self._hear([lane.decode()] if lane else self._everywhere)
            await asyncio.sleep(_RETRY_S)

    def _hear(self, lanes: Sequence[str]) -> None:
        """There may be jobs in these, as far as they concern us: another worker's own lane does not."""
        self._hints |= dict.fromkeys(lane for lane in lanes if lane in self._everywhere)
        self._woken.set()

    async def run(self) -> None:
        """Fills free slots until cancelled."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            while self._hints and self._is_free:
                hints, self._hints = self._hints, {}  # a hint that comes while we look counts for the next look
                asked = self._asked(hints)
                try:
                    delivery = await self._queue.take(asked)
                except AxonError as error:
                    _logger.warning("take.failed", error=str(error))
                    self._hints |= hints
                    await asyncio.sleep(_RETRY_S)
                    continue
                if delivery is None:
                    self._is_others_turn = False
                    self._hints |= dict.fromkeys(lane for lane in hints if lane not in asked)
                    continue
                self._hints |= dict.fromkeys(lane for lane in hints if lane not in self._empty(asked, delivery))
                self._took(delivery)
                await self._worker.start(delivery)

    def _asked(self, hints: Mapping[str, None]) -> list[str]:
        """Where to look, in this order."""
        others = [lane for lane in self._order if lane in hints]
        if self._own not in hints or (self._is_others_turn and others):
            return others
        return [self._own, *others]

    def _empty(self, asked: Sequence[str], delivery: Delivery) -> Sequence[str]:
        """The lanes that had nothing: those asked before the one it came by."""
        found = self._own if delivery.own else delivery.lane
        return asked[: asked.index(found)] if found in asked else []

    def _took(self, delivery: Delivery) -> None:
        """Its lane's turn has been: the others come first now, also when it came by our own."""
        self._metrics.taken.labels(lane="own" if delivery.own else "tenant").inc()
        if delivery.lane in self._lanes:  # what came by our own may belong to a lane that we do not know
            after = self._lanes.index(delivery.lane) + 1
            self._order = self._lanes[after:] + self._lanes[:after]
        self._is_others_turn = delivery.own
