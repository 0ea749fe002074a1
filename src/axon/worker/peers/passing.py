"""A job's way to another worker: tokens into the log, job released, delivery given back. Chooses no worker itself.

A hand-over is a planned failover: the next worker goes on from the log as after a crash, but nobody waits for a lease.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

import structlog

from axon.dispatch.dispatch import work_channel
from axon.dispatch.hint import Hint, encode_hint, hint_of
from axon.domain.job import Job
from axon.errors import AxonError, DependencyDown
from axon.ports.live import Live
from axon.ports.queue import LANE_UNKNOWN, Delivery, Queue
from axon.runtime.clock import Clock
from axon.telemetry.logs import about
from axon.telemetry.metrics import Metrics
from axon.worker.child.supervisor import Supervisor
from axon.worker.config import WorkerConfig
from axon.worker.identity import Identity
from axon.worker.job.hands import Hands
from axon.worker.job.running import Running
from axon.worker.peers.handover import Held, crowded, leaving, room_elsewhere
from axon.worker.peers.load import CROWDED_S
from axon.worker.queue.parked import Parked
from axon.worker.queue.taking import Taking

_RELEASE_TIMEOUT_S = 5.0
_POLL_S = 0.02
_WAKE_AGAIN_S = (0.05, 0.2)
"""Seconds before each repetition of the hints of jobs that were given back."""
_ROUND_S = 0.5
"""Least time between two rounds: by then the workers that took jobs have announced that they have fewer free slots."""

_logger = structlog.get_logger("axon.worker")


class Choose(Protocol):
    """Chooses which of the jobs held here go to other workers, which have ``room`` free slots."""

    def __call__(self, held: Sequence[Held], *, room: int) -> list[str]: ...


class Passing:
    """Hands jobs over: in rounds while they run, and all at once when the worker closes."""

    def __init__(
        self,
        identity: Identity,
        hands: Hands,
        parked: Parked,
        supervisor: Supervisor,
        taking: Taking,
        *,
        queue: Queue,
        live: Live,
        config: WorkerConfig,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._identity, self._hands, self._parked = identity, hands, parked
        self._supervisor, self._taking = supervisor, taking
        self._queue, self._live, self._clock, self._metrics = queue, live, clock, metrics
        self._crowded_s = config.crowded_s
        self._next_round_at = 0.0
        self._tried_since: float | None = None
        """Monotonic time at which suspects were first seen on trial; None while all may run."""
        self.num_given = 0
        """Jobs handed over so far."""

    async def hand_over(self, choose: Choose) -> None:
        """Hands over what ``choose`` picks of the jobs that have not ended, as far as other workers have free slots."""
        if self._clock.monotonic() < self._next_round_at:
            return
        hands, room = self._hands, await self._room()
        held = [self._held(running) for running in hands.running.values() if running.terminal is None]
        num_given = 0
        for job_id in choose(held, room=room):
            if (running := hands.running.get(job_id)) is not None:
                num_given += await self._give_up(running)
        if num_given:
            self._next_round_at = self._clock.monotonic() + _ROUND_S

    async def scatter(self) -> None:
        """The engine has died: hands its jobs to workers with room, all at once, as far as they may run beside others.

        What does not fit stays, and so do suspects: the next engine here is one with nothing else in it.
        """
        room, running = await self._room(), self._hands.running
        held = [self._held(each) for each in running.values() if each.terminal is None and not each.is_leaving]
        chosen = [running[job_id] for job_id in self._free(held, room=room)]
        given = await asyncio.gather(*map(self._give_up, chosen))
        if any(given):
            _logger.info("jobs.scattered", jobs=sum(given), left=len(running))
            await self._wake_again({each.job.lane: each.job for each in chosen}.values())

    async def relieve(self) -> None:
        """Hands over jobs that have had no place in the engine's steps for too long.

        A worker that took more sequences than it has slots does so soon: what waits here would have been taken by
        another worker. While there is no engine, or suspects have had it for themselves for longer than most trials
        take, all others may go.
        """
        if self._is_tried_long() or not self._hands.has_engine:
            await self.hand_over(self._free)
            return
        patience_s = self._crowded_s
        if self._hands.num_sequences > self._hands.slots:
            patience_s = min(patience_s, CROWDED_S)
        if self._hands.is_closed or self._supervisor.longest_wait_s < patience_s:
            return
        await self.hand_over(partial(crowded, patience_s=patience_s))

    async def give_back(self, job: Job, delivery: Delivery) -> None:
        """Returns a delivery to the queue and wakes the workers that could take it; parks it if the queue is away."""
        self._taking.rest()  # before the delivery is back: this worker could be the first to take it again
        try:
            await self._queue.give_back(delivery)
        except AxonError:
            self._parked.add(delivery)  # looked at again: the job may be another's by then
        with contextlib.suppress(AxonError):
            await self._wake_others(job)

    async def leave(self, delivery: Delivery) -> None:
        """Returns a delivery that this worker cannot run, and wakes the workers that may; others of its lane wait."""
        self._taking.avoid(delivery.lane)
        await self._queue.give_back(delivery)
        with contextlib.suppress(AxonError):
            await self._wake(Hint(lane=delivery.lane))

    async def forward(self, job: Job, delivery: Delivery, lane: str) -> None:
        """Moves a job of another version to that version's lane. It is acked here once the queue has it there: a crash
        in between leaves two copies, never none."""
        try:
            await self._queue.publish(lane, delivery.body)
        except DependencyDown as error:
            if error.code != LANE_UNKNOWN:
                raise
            await self._queue.declare([lane])
            await self._queue.publish(lane, delivery.body)
        await self._queue.ack(delivery)
        with contextlib.suppress(AxonError):
            await self._wake(replace(hint_of(job), lane=lane))

    async def release_all(self) -> None:
        """Gives up every job and every delivery, so that another worker, or the next start, goes on at once."""
        for running in list(self._hands.running.values()):
            with contextlib.suppress(AxonError):
                await self._live.log.release(running.job.id, running.epoch, crashes=self._crashes(running))
                await self._queue.give_back(running.delivery)
                await self._wake_others(running.job)
        for delivery in self._parked.take():
            with contextlib.suppress(AxonError):
                await self._queue.give_back(delivery)

    async def _wake_others(self, job: Job) -> None:
        await self._wake(hint_of(job))

    async def _wake(self, hint: Hint) -> None:
        await self._live.wakeups.notify(work_channel(self._identity.deployment), encode_hint(hint))

    async def _wake_again(self, jobs: Iterable[Job]) -> None:
        """Repeats the hints: the queue does not confirm a return, so that the first one may have come before it."""
        for pause_s in _WAKE_AGAIN_S:
            await asyncio.sleep(pause_s)
            with contextlib.suppress(AxonError):
                for job in jobs:
                    await self._wake_others(job)

    async def _room(self) -> int:
        """Free slots of other workers; 0 when none is known."""
        me = self._identity
        try:
            presences = await self._live.presences.all(me.deployment)
        except AxonError:
            return 0
        return room_elsewhere(presences, me=me.incarnation, version=me.version, pool=me.pool)

    def _held(self, running: Running) -> Held:
        job = running.job
        return Held(
            job_id=job.id,
            slots=job.choices,
            num_left=job.choices * job.sampling.max_tokens - len(running.tokens),
            waited_s=self._supervisor.waited_s(running),
        )

    def _is_tried_long(self) -> bool:
        """Whether suspects have been on trial for longer than a hand-over costs."""
        if not self._hands.trials.on_trial:
            self._tried_since = None
            return False
        now = self._clock.monotonic()
        self._tried_since = now if self._tried_since is None else self._tried_since
        return now - self._tried_since >= CROWDED_S

    def _free(self, held: Sequence[Held], *, room: int) -> list[str]:
        """The jobs that need an engine and may run beside others."""
        running, trials = self._hands.running, self._hands.trials
        free = [each for each in held if not running[each.job_id].is_paused and not trials.is_suspect(each.job_id)]
        return leaving(free, room=room)

    def _crashes(self, running: Running) -> int:
        return self._hands.trials.crashes(running.job.id)

    async def _give_up(self, running: Running) -> bool:
        """Hands the job over; it goes on here when that fails."""
        self._hands.withdraw(running)
        if await self._release(running):
            await self._put_back(running)
            return True
        if self._hands.holds(running):
            self._hands.reinstate(running)
        return False

    async def _release(self, running: Running) -> bool:
        """Whether the job is released, with all its tokens in the log, and its delivery still ours."""
        hands = self._hands
        try:
            async with asyncio.timeout(_RELEASE_TIMEOUT_S):
                while running.pending() is not None and hands.holds(running):  # noqa: ASYNC110 - the emitter appends it
                    await asyncio.sleep(_POLL_S)
                if running.terminal is not None or not hands.holds(running):
                    return False
                await self._live.log.release(running.job.id, running.epoch, crashes=self._crashes(running))
        except (AxonError, TimeoutError) as error:
            _logger.warning(
                "job.not_handed_over", **about(running.job, running.attempt), error=str(error), next="goes on here"
            )
            return False
        return hands.holds(running)  # else it was parked or forgotten meanwhile, and its delivery with it

    async def _put_back(self, running: Running) -> None:
        """Gives the delivery of a released job back."""
        self._hands.forget(running)
        self.num_given += 1
        self._metrics.streams.handed_over.inc()
        await self.give_back(running.job, running.delivery)
