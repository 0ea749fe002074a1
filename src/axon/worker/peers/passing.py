"""A job's way to another worker: its tokens in the log, the job released, its delivery given back. Chooses nobody."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Protocol

import structlog

from axon.dispatch.dispatch import work_channel
from axon.dispatch.hint import encode_hint, hint_of
from axon.domain.job import Job
from axon.errors import AxonError
from axon.ports.live import Live
from axon.ports.queue import Delivery, Queue
from axon.telemetry.metrics import Metrics
from axon.worker.job.running import Running
from axon.worker.peers.handover import Held, room_elsewhere

_RELEASE_S = 5.0
_LOOK_S = 0.02
_PACE_S = 0.5
"""Between two rounds: by then those who took what was given have said that they have less room."""

_logger = structlog.get_logger("axon.worker")


class Choose(Protocol):
    """Which of the jobs held here go to other workers that have room."""

    def __call__(self, held: Sequence[Held], *, room: int) -> list[str]: ...


class Holder(Protocol):
    """The worker, as the passing needs it."""

    @property
    def incarnation(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def pool(self) -> str: ...

    @property
    def running(self) -> Mapping[str, Running]: ...

    def holds(self, running: Running) -> bool: ...

    def waited_s(self, running: Running) -> float: ...

    def leave_engine(self, running: Running) -> None: ...

    def come_back(self, running: Running) -> None: ...

    def forget(self, running: Running) -> None: ...

    def keep(self, delivery: Delivery) -> None: ...

    def rest(self) -> None: ...


class Passing:
    """A planned failover: the next worker goes on from the log as after a crash, but nobody waits for a lease."""

    def __init__(self, *, worker: Holder, deployment: str, queue: Queue, live: Live, metrics: Metrics) -> None:
        self._worker, self._deployment = worker, deployment
        self._queue, self._live, self._metrics = queue, live, metrics
        self._resting_until = 0.0
        self.num_given = 0
        """Jobs that it has handed over."""

    async def hand_over(self, choose: Choose) -> None:
        """What ``choose`` chooses of the jobs that go on, as far as others have room."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._resting_until:
            return
        try:
            presences = await self._live.presences.all(self._deployment)
        except AxonError:
            return  # nobody is known to be there
        worker = self._worker
        room = room_elsewhere(presences, me=worker.incarnation, version=worker.version, pool=worker.pool)
        held = [self._held(running) for running in worker.running.values() if running.terminal is None]
        num_given = 0
        for job_id in choose(held, room=room):
            if (running := worker.running.get(job_id)) is not None:
                num_given += await self._give_up(running)
        if num_given:
            self._resting_until = loop.time() + _PACE_S

    async def give_back(self, job: Job, delivery: Delivery) -> None:
        """Leaves it to the others, and wakes who could take it; kept where it cannot be given back now."""
        self._worker.rest()  # before: else this worker could be the first to take it again
        try:
            await self._queue.give_back(delivery)
        except AxonError:
            self._worker.keep(delivery)  # looked at again: the job may be anybody's by then
        with contextlib.suppress(AxonError):
            await self._live.wakeups.notify(work_channel(self._deployment), encode_hint(hint_of(job)))

    def _held(self, running: Running) -> Held:
        job = running.job
        return Held(
            job_id=job.id,
            slots=job.choices,
            num_left=job.choices * job.sampling.max_tokens - len(running.tokens),
            waited_s=self._worker.waited_s(running),
        )

    async def _give_up(self, running: Running) -> bool:
        """Gives the job up; it stays where that cannot be done now."""
        running.is_leaving = True
        self._worker.leave_engine(running)
        if await self._release(running):
            await self._put_back(running)
            return True
        if self._worker.holds(running):
            running.is_leaving = False
            self._worker.come_back(running)
        return False

    async def _release(self, running: Running) -> bool:
        """Whether the job is anybody's now, with all its tokens in the log, and its delivery still ours."""
        try:
            async with asyncio.timeout(_RELEASE_S):
                while running.pending() is not None and self._worker.holds(running):  # noqa: ASYNC110 - the emitter's at it
                    await asyncio.sleep(_LOOK_S)
                if running.terminal is not None or not self._worker.holds(running):
                    return False
                await self._live.log.release(running.job.id, running.epoch)
        except (AxonError, TimeoutError) as error:
            _logger.warning("job.not_handed_over", turn=running.job.id, error=str(error))
            return False
        return self._worker.holds(running)  # else it was parked or forgotten meanwhile, and its delivery with it

    async def _put_back(self, running: Running) -> None:
        """Gives the delivery of a released job back."""
        self._worker.forget(running)
        self.num_given += 1
        self._metrics.handed_over.inc()
        await self.give_back(running.job, running.delivery)
