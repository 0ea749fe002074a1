"""Off the queue: fills free slots for whoever was served least, guided by hints of where jobs are. Knows no engine.

The worker's own lane comes first, but neither twice in a row while another may have a job nor before somebody who has
had less: whose blocks are held here is served quickly, and nobody else is kept waiting for it. What is left in the own
lane goes to its tenant's lane.

Without a free slot a job is taken all the same when its tenant holds less than its part here; never more of them than
there are slots.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

import structlog

from axon.dispatch.dispatch import work_channel
from axon.dispatch.hint import decode_hint
from axon.domain.job import Job
from axon.domain.lane import lane_names, own_lane, pool_name
from axon.errors import AxonError
from axon.ports.live import Live
from axon.ports.queue import Delivery, Lanes
from axon.telemetry.metrics import Metrics
from axon.telemetry.sparse import Sparse
from axon.worker.queue.hearsay import Hearsay
from axon.worker.queue.order import AHEAD, in_order, score, short
from axon.worker.queue.sharing import Sharing

_LOOK_S = 1.0
"""How often lanes are looked at in case a hint was lost."""
_LANES_AT_ONCE = 12
_IDLE_LOOK, _BUSY_LOOK = 1 / 3, 1 / 24
"""How many of the lanes that nobody spoke of are looked at each time."""
_RETRY_S = 0.2
_REST_S = 1.0

_logger = structlog.get_logger("axon.worker")


class Taker(Protocol):
    """The worker, as the taking needs it."""

    @property
    def slots(self) -> int: ...

    @property
    def jobs(self) -> Sequence[Job]:
        """What it holds."""

    @property
    def held_back(self) -> Mapping[str, int]:
        """How many streams of each tenant are held back to its rate."""

    @property
    def is_full(self) -> bool:
        """Whether it may hold no more."""

    async def start(self, delivery: Delivery) -> None:
        """Deals with a delivery; never raises for what a service does."""


class Taking:
    """Takes while its worker has room, or somebody is short of it, until it is stopped."""

    def __init__(
        self,
        *,
        worker: Taker,
        deployment: str,
        num_lanes: int,
        pool: str = "",
        name: str = "",
        queue: Lanes,
        live: Live,
        metrics: Metrics,
    ) -> None:
        """``name``: of the worker's own lane; none where it is empty."""
        self._worker, self._deployment = worker, deployment
        self._lanes = lane_names(deployment, num_lanes, pool)
        self._own = own_lane(deployment, name) if name else ""
        self._is_others_turn = False
        self._queue, self._wakeups, self._metrics = queue, live.wakeups, metrics
        self._hearsay = Hearsay(self._lanes, self._own)
        self.sharing = Sharing(live.shares, pool_name(deployment, pool), self._active)
        self._woken, self._look_everywhere = asyncio.Event(), asyncio.Event()
        self._is_stopped = False
        self._resting_until = 0.0
        self._failures = Sparse()

    async def open(self) -> None:
        await self._queue.declare(self._lanes)
        if self._own:
            await self._queue.declare_own(self._own)

    def wake(self) -> None:
        """There may be room now."""
        self._woken.set()

    def rest(self) -> None:
        """Leaves what was just given back to the others, for a moment."""
        self._resting_until = self._now() + _REST_S

    def stop(self) -> None:
        """Takes nothing more."""
        self._is_stopped = True

    async def num_waiting(self) -> int:
        """Jobs in all lanes; one where that cannot be found out."""
        try:
            return sum((await self._queue.depths(self._lanes)).values())
        except AxonError:
            return 1

    async def listen(self) -> None:
        """Wakes the taking when there is work."""
        while True:
            self._look_everywhere.set()  # at the start, and while nobody can be listened to
            with contextlib.suppress(AxonError):
                async with self._wakeups.listen(work_channel(self._deployment)) as listener:
                    while True:
                        if payload := await listener.next(_LOOK_S):
                            self._hearsay.hear(decode_hint(payload), self._now())
                            self._woken.set()
            await asyncio.sleep(_RETRY_S)

    async def look(self) -> None:
        """Wakes it where a hint was lost. To look costs the queue less than to take from a lane that has nothing."""
        while True:
            share = 1.0 if self._look_everywhere.is_set() else self._look_share
            self._look_everywhere.clear()
            lanes = list(self._hearsay.suspected(self._now(), share=share))
            for first in range(0, len(lanes), _LANES_AT_ONCE):
                await self._look_into(lanes[first : first + _LANES_AT_ONCE])
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._look_everywhere.wait()

    async def _look_into(self, lanes: Sequence[str]) -> None:
        """A few at a time: one that does not answer keeps nothing of the others' from being seen."""
        try:
            depths = await self._queue.depths(lanes)
        except AxonError as error:
            if (held_back := self._failures.pass_at(self._now())) is not None:
                _logger.warning("look.failed", error=str(error), not_logged=held_back)
            await asyncio.sleep(_RETRY_S)
            return
        self._failures.reset()
        self._hearsay.find([lane for lane, depth in depths.items() if depth], self._now())
        self._woken.set()

    @property
    def _look_share(self) -> float:
        return _BUSY_LOOK if self._num_held >= self._worker.slots else _IDLE_LOOK

    @property
    def _num_held(self) -> int:
        return sum(job.choices for job in self._worker.jobs)

    async def run(self) -> None:
        """Fills slots until cancelled."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            while asked := self._asked():
                self._hearsay.clear(asked)  # a hint that comes while we look counts for the next look
                try:
                    delivery = await self._queue.take(asked)
                except AxonError as error:
                    _logger.warning("take.failed", error=str(error))
                    self._hearsay.restore(asked)
                    await asyncio.sleep(_RETRY_S)
                    continue
                if delivery is None:
                    self._is_others_turn = False
                    continue
                self._took(delivery, asked)
                await self._worker.start(delivery)

    def _asked(self) -> list[str]:
        """Where to look, in this order; nowhere while there is no room."""
        if not self._hearsay or self._is_stopped or self._now() < self._resting_until:
            return []
        jobs, slots, now = self._worker.jobs, self._worker.slots, self._now()
        num_held = self._num_held
        if num_held >= 2 * slots or self._worker.is_full:
            return []
        held = Counter[str]()
        for job in jobs:
            held[job.lane] += job.choices
        waiting = self._hearsay.waiting(held, now)
        if held_back := self._worker.held_back:  # who has a whole engine's worth held back takes nobody else's place
            waiting = [
                each
                for each in waiting
                if not each.parties or any(held_back.get(who, 0) < slots for who in each.parties)
            ]
        if num_held >= slots:
            return [each.lane for each in short(waiting, jobs, slots)]
        served = self.sharing.served
        others = in_order(waiting, served.of, served.level)
        own = self._hearsay.own(held, now)
        if own is not None and others:
            is_ahead = score(own, served.of, served.level) - AHEAD > score(others[0], served.of, served.level)
            own = None if self._is_others_turn or is_ahead else own
        return [*([own.lane] if own else []), *(each.lane for each in others)]

    def _took(self, delivery: Delivery, asked: Sequence[str]) -> None:
        """Those asked before the one it came by had nothing; its lane has had its turn, also when it came by ours."""
        self._metrics.taken.labels(lane="own" if delivery.own else "tenant").inc()
        found = self._own if delivery.own else delivery.lane
        place = asked.index(found) if found in asked else 0
        self._hearsay.restore(asked[place:])
        self._hearsay.took(delivery.lane, by=found, now=self._now())
        self._is_others_turn = delivery.own

    def _active(self) -> set[str]:
        """Tenants that run here or wait, as far as one knows."""
        jobs, now = self._worker.jobs, self._now()
        self._hearsay.hold(jobs, now)
        return self._hearsay.active(now) | {job.tenant for job in jobs}

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
