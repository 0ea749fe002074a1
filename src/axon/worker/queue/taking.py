"""Takes jobs off the queue into free slots, by fair queueing over tenants. Knows no engine and claims nothing.

Lanes are asked in the order of their tenants' virtual counters (``order``), and only those in which hints say that a
job may wait (``hearsay``). The worker's own lane comes first, because its jobs find their KV blocks here, but neither
twice in a row while another lane may have a job nor before a tenant that was served less. The queue moves a job that
stays in the own lane to its tenant's lane.

Without a free slot a job is taken all the same when its tenant holds less than its part of the slots here; the worker
then holds at most twice as many sequences as it has slots.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Sequence

import structlog

from axon.dispatch.dispatch import work_channel
from axon.dispatch.hint import decode_hint
from axon.domain.fairness.lane import lane_names, pool_name
from axon.domain.fairness.lane import own_lane as own_lane_name
from axon.errors import AxonError
from axon.ports.live import Live
from axon.ports.queue import Delivery, Lanes
from axon.runtime.clock import Clock
from axon.telemetry.metrics import Metrics
from axon.telemetry.sparse import Sparse
from axon.worker.identity import Identity
from axon.worker.job.hands import Hands
from axon.worker.queue.hearsay import Hearsay
from axon.worker.queue.neighbours import Neighbours
from axon.worker.queue.order import SLOT_COST, Waiting, in_order, score, short
from axon.worker.queue.sharing import Sharing

_LOOK_S = 1.0
"""Seconds between two polls of the lanes, in case a hint was lost."""
_LANES_AT_ONCE = 12
"""Lanes that one poll asks for."""
_LOOK_SHARE = 1 / 24
"""The share of the lanes without a recent hint that is polled each time: control repeats hints of jobs that wait."""
_RETRY_S = 0.2
_REST_S = 1.0
"""Seconds for which nothing is taken after a delivery was given back for others."""

_logger = structlog.get_logger("axon.worker")


class Taking:
    """Takes while the worker has room, or a tenant has less than its part here, until the worker drains."""

    def __init__(
        self,
        identity: Identity,
        hands: Hands,
        *,
        num_lanes: int,
        own_lane: str,
        queue: Lanes,
        live: Live,
        clock: Clock,
        metrics: Metrics,
        neighbours: Callable[[], Collection[str]] = tuple,
    ) -> None:
        """``own_lane``: the worker's name, under which it has a lane of its own; empty for none. ``neighbours`` returns
        the pools whose engines share these cores."""
        me = identity
        self._hands, self._deployment = hands, me.deployment
        self._lanes = lane_names(me.deployment, num_lanes, me.pool, me.letter)
        self._own = own_lane_name(me.deployment, own_lane, me.letter) if own_lane else ""
        self._took_own_last = False
        self._queue, self._wakeups, self._metrics = queue, live.wakeups, metrics
        self._now = clock.monotonic
        self._hearsay = Hearsay(self._lanes, self._own)
        pool = pool_name(me.deployment, me.pool)
        self.sharing = Sharing(live.shares, pool, self._active, Neighbours(live.shares, pool, neighbours, clock.now))
        self._woken, self._look_everywhere = asyncio.Event(), asyncio.Event()
        self._resting_until = 0.0
        self._avoided: dict[str, float] = {}
        """By lane: the time until which nothing is taken from it."""
        self._failures = Sparse()
        hands.on_room.append(self._woken.set)

    async def open(self) -> None:
        """Declares the lanes."""
        await self._queue.declare(self._lanes)
        if self._own:
            await self._queue.declare_own(self._own)

    def rest(self) -> None:
        """Takes nothing for a moment, so that others take what was just given back."""
        self._resting_until = self._now() + _REST_S

    def avoid(self, lane: str) -> None:
        """Takes nothing from one lane for a moment, so that others take what was just given back to it."""
        now = self._now()
        self._avoided = {each: until for each, until in self._avoided.items() if until > now}
        self._avoided[lane] = now + _REST_S

    async def num_waiting(self) -> int:
        """The number of jobs in all lanes; 1 when the queue cannot say."""
        try:
            return sum((await self._queue.depths(self._lanes)).values())
        except AxonError:
            return 1

    async def listen(self) -> None:
        """Wakes the taking at each hint, until cancelled."""
        while True:
            self._look_everywhere.set()  # at the start, and after each loss of the channel
            with contextlib.suppress(AxonError):
                async with self._wakeups.listen(work_channel(self._deployment)) as listener:
                    while True:
                        if payload := await listener.next(_LOOK_S):
                            self._hearsay.hear(decode_hint(payload), self._now())
                            self._woken.set()
            await asyncio.sleep(_RETRY_S)

    async def look(self) -> None:
        """Polls lanes for jobs whose hint was lost; to poll costs the queue less than to take from an empty lane."""
        while True:
            share = 1.0 if self._look_everywhere.is_set() else _LOOK_SHARE
            self._look_everywhere.clear()
            lanes = list(self._hearsay.suspected(self._now(), share=share))
            for first in range(0, len(lanes), _LANES_AT_ONCE):
                await self._look_into(lanes[first : first + _LANES_AT_ONCE])
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._look_everywhere.wait()

    async def _look_into(self, lanes: Sequence[str]) -> None:
        """Polls a few lanes: a lane that does not answer hides only the few that were asked with it."""
        try:
            depths = await self._queue.depths(lanes)
        except AxonError as error:
            if (held_back := self._failures.pass_at(self._now())) is not None:
                _logger.warning("look.failed", lanes=len(lanes), error=str(error), not_logged=held_back)
            await asyncio.sleep(_RETRY_S)
            return
        self._failures.reset()
        self._hearsay.find([lane for lane, depth in depths.items() if depth], self._now())
        self._woken.set()

    async def run(self, start: Callable[[Delivery], Awaitable[None]]) -> None:
        """Takes until cancelled; ``start`` deals with each delivery, and raises for nothing that a service does."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            while asked := self._asked():
                self._hearsay.clear(asked)  # a hint that comes while we take counts for the next round
                try:
                    delivery = await self._queue.take(asked)
                except AxonError as error:
                    _logger.warning("take.failed", lanes=len(asked), error=str(error), retry_s=_RETRY_S)
                    self._hearsay.restore(asked)
                    await asyncio.sleep(_RETRY_S)
                    continue
                if delivery is None:
                    self._took_own_last = False
                    continue
                self._took(delivery, asked)
                await start(delivery)

    def _asked(self) -> list[str]:
        """The lanes to take from, in this order; none while there is no room, or no engine."""
        hands = self._hands
        if not self._hearsay or hands.is_closed or not hands.has_engine or self._now() < self._resting_until:
            return []
        slots, now = hands.slots, self._now()
        held, holds_back = hands.by_lane()
        num_held = sum(held.values())
        if num_held >= 2 * slots or hands.is_full:
            return []
        waiting = self._hearsay.waiting(held, now)
        if holds_back:
            waiting = self._without_idle(waiting)
        if num_held >= slots:
            return self._without_avoided([each.lane for each in short(waiting, hands.jobs, slots)])
        served = self.sharing.served
        others = in_order(waiting, served.of, served.level)
        own = self._hearsay.own(held, now)
        if own is not None and others:
            is_ahead = score(own, served.of, served.level) - SLOT_COST > score(others[0], served.of, served.level)
            own = None if self._took_own_last or is_ahead else own
        return self._without_avoided([*([own.lane] if own else []), *(each.lane for each in others)])

    def _without_avoided(self, lanes: list[str]) -> list[str]:
        if not self._avoided:
            return lanes
        now = self._now()
        return [lane for lane in lanes if self._avoided.get(lane, now) <= now]

    def _without_idle(self, waiting: list[Waiting]) -> list[Waiting]:
        """Leaves out lanes whose every tenant has a whole engine's worth of jobs already that need no slot now."""
        num_idle, slots = self._hands.num_idle, self._hands.slots
        return [
            each for each in waiting if not each.parties or any(num_idle.get(who, 0) < slots for who in each.parties)
        ]

    def _took(self, delivery: Delivery, asked: Sequence[str]) -> None:
        """The lanes asked before this delivery's were empty; its lane has had its turn, even by way of the own lane."""
        self._metrics.queue.taken.labels(lane="own" if delivery.own else "tenant").inc()
        found = self._own if delivery.own else delivery.lane
        place = asked.index(found) if found in asked else 0
        self._hearsay.restore(asked[place:])
        self._hearsay.took(delivery.lane, by=found, now=self._now())
        self._took_own_last = delivery.own

    def _active(self) -> set[str]:
        """The tenants that run here or, as far as hints say, wait."""
        jobs, now = self._hands.jobs, self._now()
        self._hearsay.hold(jobs, now)
        return self._hearsay.active(now) | {job.tenant for job in jobs}
