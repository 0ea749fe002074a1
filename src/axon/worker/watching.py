"""Polls for what no token brings along: deadlines, cancellations, dead owners of parked deliveries. Runs no job."""

import asyncio
import contextlib
import itertools

from axon.domain.turn import TurnState
from axon.errors import AxonError
from axon.ownership.liveness import Liveness
from axon.ports.live import STOPS, Live
from axon.runtime.clock import Clock
from axon.worker.child.supervisor import Supervisor
from axon.worker.intake import Intake
from axon.worker.job.hands import Hands
from axon.worker.job.running import Running
from axon.worker.peers.passing import Passing
from axon.worker.queue.parked import Parked

_TICK_S = 0.1
"""Seconds between two looks at the owners of parked deliveries: a dead owner's streams stand still for that long."""
_TICKS_PER_ROUND = 5
"""Everything else is looked at once in this many ticks."""
_LISTEN_S = 60.0
_RETRY_S = 0.2


class Watching:
    """``run`` polls; ``listen`` acts at once on the cancellations that are announced."""

    def __init__(
        self,
        hands: Hands,
        parked: Parked,
        intake: Intake,
        supervisor: Supervisor,
        passing: Passing,
        *,
        live: Live,
        liveness: Liveness,
        clock: Clock,
    ) -> None:
        self._hands, self._parked = hands, parked
        self._intake, self._supervisor, self._passing = intake, supervisor, passing
        self._log, self._wakeups = live.log, live.wakeups
        self._liveness, self._clock = liveness, clock

    async def run(self) -> None:
        """Polls until cancelled."""
        for tick in itertools.count(1):
            await asyncio.sleep(_TICK_S)
            if tick % _TICKS_PER_ROUND:
                with contextlib.suppress(AxonError):
                    await self._look_at_owners()
            else:
                await self._look_at_everything()

    async def listen(self) -> None:
        """Asks the log about each job whose cancellation is announced, until cancelled; ``run`` sees what is missed."""
        while True:
            try:
                async with self._wakeups.listen(STOPS) as listener:
                    while True:
                        job_id = await listener.next(_LISTEN_S)
                        if job_id and (running := self._hands.running.get(job_id.decode(errors="replace"))):
                            self._hands.ask_log(running)
            except AxonError:
                await asyncio.sleep(_RETRY_S)

    async def _look_at_everything(self) -> None:
        for running in list(self._hands.running.values()):
            with contextlib.suppress(AxonError):
                await self._look_at(running)
        self._supervisor.check_progress()
        await self._passing.relieve()
        for delivery in self._parked.take():
            await self._intake.start(delivery)

    async def _look_at_owners(self) -> None:
        """Starts every delivery whose owner's lease has lapsed, all at once: their readers wait."""
        owners = self._parked.owners
        gone = owners - await self._liveness.living(owners)
        await asyncio.gather(*map(self._intake.start, self._parked.take_of(gone)))

    async def _look_at(self, running: Running) -> None:
        if running.terminal is not None and not running.is_held_back:
            return
        if running.job.deadline <= self._clock.now():
            self._hands.end(running, TurnState.EXPIRED)
            return
        if self._clock.monotonic() - running.answered_at < _TICK_S * _TICKS_PER_ROUND:
            return  # it speaks, and every append's answer says whether it was cancelled
        view = await self._log.read(running.job.id, after=running.sent)
        if view is not None and view.cancelled:
            self._hands.ask_log(running)
