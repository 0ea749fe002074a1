"""Looks after turns that nobody else does: orphans, passed deadlines, text past its retention. Knows no engine."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from axon.control.config import ControlConfig
from axon.dispatch.dispatch import Dispatch
from axon.dispatch.ending import Ending
from axon.domain.chunk import Chunk
from axon.domain.job import Job
from axon.domain.ownership import LogView
from axon.domain.turn import Turn, TurnState
from axon.errors import AxonError
from axon.ports.live import AppendStatus, Live
from axon.ports.store import TurnStore
from axon.runtime.clock import Clock

_BATCH = 500
_OWNER = "sweeper"

_logger = structlog.get_logger("axon.control")


class Sweeper:
    """``recover`` once at start, ``run`` from then on."""

    def __init__(
        self,
        *,
        turns: TurnStore,
        live: Live,
        dispatch: Dispatch,
        ending: Ending,
        readmit: Callable[[Job], Awaitable[None]],
        config: ControlConfig,
        retention_s: float,
        clock: Clock,
    ) -> None:
        self._turns, self._live, self._dispatch, self._ending = turns, live, dispatch, ending
        self._readmit = readmit
        self._config, self._retention_s, self._clock = config, retention_s, clock

    async def recover(self) -> int:
        """Enqueues every accepted turn that has not ended; for a start whose queue and log are empty."""
        turns = await self._turns.unfinished(limit=1_000_000)
        for turn in turns:
            await self._readmit(turn.job)
            await self._dispatch.again(turn.job)
        if turns:
            _logger.info("turns.recovered", count=len(turns))
        return len(turns)

    async def run(self) -> None:
        """Sweeps until cancelled."""
        while True:
            await asyncio.sleep(self._config.sweep_s)
            try:
                await self.sweep()
            except AxonError as error:
                _logger.warning("sweep.failed", error=str(error))

    async def sweep(self) -> None:
        """One look at everything."""
        for turn in await self._turns.unfinished(limit=_BATCH):
            await self._look_at(turn)
        await self._turns.purge(ended_before=self._clock.now() - self._retention_s)

    async def _look_at(self, turn: Turn) -> None:
        view = await self._live.log.read(turn.id, after=0)
        if view is None or view.ended or await self._owned(view):
            return  # its owner, or the delivery on the queue, sees to it
        if turn.job.deadline <= self._clock.now():
            await self._end(turn, view, TurnState.EXPIRED)
        elif view.cancelled:
            await self._end(turn, view, TurnState.CANCELLED)

    async def _owned(self, view: LogView) -> bool:
        return bool(view.owner) and view.owner in await self._live.leases.alive([view.owner])

    async def _end(self, turn: Turn, view: LogView, state: TurnState) -> None:
        """Claims the job only to write its end."""
        epoch = await self._live.log.claim(turn.id, _OWNER, over=view.epoch)
        if epoch is None:
            return  # somebody else was quicker
        last = Chunk(first=view.last + 1, epoch=epoch, terminal=state)
        [answer] = await self._live.log.append([(turn.id, last)])
        if answer.status is AppendStatus.OK:
            await self._ending.finish(turn.job, [*view.chunks, last])
