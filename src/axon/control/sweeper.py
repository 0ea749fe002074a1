"""Looks after turns that nobody else does: orphans, passed deadlines, tickets of those that wait. Knows no engine."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

import structlog

from axon.control.config import ControlConfig
from axon.dispatch.dispatch import Dispatch
from axon.domain.chunk import Chunk
from axon.domain.failure import Failure
from axon.domain.job import Job
from axon.domain.ownership import LogView
from axon.domain.turn import Turn, TurnState
from axon.errors import AxonError
from axon.ownership.ending import Ending
from axon.ownership.liveness import Liveness
from axon.ports.live import AppendStatus, Live
from axon.ports.queue import LANE_UNKNOWN, Queue
from axon.ports.store import TurnStore
from axon.runtime.clock import Clock

_BATCH = 500
_MOST = 10_000
"""Turns whose tickets are renewed."""
_OWNER = "sweeper"

_logger = structlog.get_logger("axon.control")


class Sweeper:
    """``recover`` once at start, ``run`` from then on."""

    def __init__(
        self,
        *,
        turns: TurnStore,
        live: Live,
        queue: Queue,
        dispatch: Dispatch,
        ending: Ending,
        liveness: Liveness,
        readmit: Callable[[Job], Awaitable[None]],
        config: ControlConfig,
        retention_s: float,
        clock: Clock,
        leads: Callable[[], bool] = lambda: True,
        renew: Callable[[Sequence[Job]], Awaitable[None]] | None = None,
        renew_s: float = 15.0,
    ) -> None:
        self._turns, self._live, self._queue = turns, live, queue
        self._dispatch, self._ending, self._liveness = dispatch, ending, liveness
        self._readmit, self._leads = readmit, leads
        self._renew, self._renew_s, self._renewed_at = renew, renew_s, float("-inf")
        self._ownerless_since: dict[str, float] = {}
        self._ended: set[str] = set()
        """Turns that have ended, though the store has not heard of it yet."""
        self._silent: Counter[tuple[str, int]] = Counter()
        """Turns whose owner's lease has lapsed, with its epoch: how many sweeps have seen it so."""
        self._config, self._retention_s, self._clock = config, retention_s, clock

    async def recover(self) -> int:
        """Enqueues every accepted turn that has not ended; for a start whose queue and log are empty."""
        turns = await self._turns.unfinished(limit=1_000_000)
        for turn in turns:
            try:
                await self._readmit(turn.job)
                await self._dispatch.again(turn.job)
            except AxonError as error:
                _logger.error("turn.not_recovered", turn=turn.id, error=str(error))
                if error.code == LANE_UNKNOWN:
                    await self._give_up(turn)
                # Anything else passes: a turn that nobody runs is adopted by a later sweep.
        if turns:
            _logger.info("turns.recovered", count=len(turns))
        return len(turns)

    async def _give_up(self, turn: Turn) -> None:
        """Its deployment is gone, so nobody can ever run it here."""
        message = f"The model '{turn.job.deployment}' it was asked of is not served here any more."
        last = Chunk(first=1, epoch=0, terminal=TurnState.FAILED, code=Failure.DEPLOYMENT_GONE, message=message)
        await self._ending.finish(turn.job, [last])

    async def run(self) -> None:
        """Sweeps until cancelled, while it leads; who stands by notices too when the leases were lost."""
        while True:
            await asyncio.sleep(self._config.sweep_s)
            try:
                await (self.sweep() if self._leads() else self._liveness.look())
            except AxonError as error:
                _logger.warning("sweep.failed", error=str(error))

    async def sweep(self) -> None:
        """One look at everything."""
        await self._liveness.look()
        unfinished = await self._turns.unfinished(limit=_BATCH)
        ownerless = [turn for turn in unfinished if await self._looked_at(turn)]
        unfinished_ids = {turn.id for turn in unfinished}
        self._silent = Counter({seen: num for seen, num in self._silent.items() if seen[0] in unfinished_ids})
        now = self._clock.monotonic()
        self._ownerless_since = {turn.id: self._ownerless_since.get(turn.id, now) for turn in ownerless}
        for turn in ownerless:
            if now - self._ownerless_since[turn.id] >= self._config.orphan_s:
                with contextlib.suppress(AxonError):
                    await self._adopt(turn)
        self._ended &= unfinished_ids
        if now - self._renewed_at >= self._renew_s:
            self._renewed_at = now
            await self._renew_tickets()
        await self._turns.purge(ended_before=self._clock.now() - self._retention_s)

    async def _renew_tickets(self) -> None:
        """Of all accepted turns that have not ended: who runs one renews it too, who waits has nobody else to."""
        if self._renew is not None:
            unfinished = await self._turns.unfinished(limit=_MOST)
            await self._renew([turn.job for turn in unfinished if turn.id not in self._ended])

    async def _looked_at(self, turn: Turn) -> bool:
        """``_ownerless``, for one turn that may fail without keeping the others from being looked at."""
        try:
            return await self._ownerless(turn)
        except AxonError as error:
            _logger.warning("turn.not_looked_at", turn=turn.id, error=str(error))
            return False

    async def _ownerless(self, turn: Turn) -> bool:
        """Whether nobody runs the turn; one whose end is due is ended here and now."""
        view = await self._live.log.read(turn.id, after=0)
        if view is None:
            return True
        if view.ended:
            self._ended.add(turn.id)
            return True
        if await self._liveness.alive(view.owner):
            return False
        if turn.job.deadline <= self._clock.now():
            await self._end(turn, view, TurnState.EXPIRED)
        elif view.cancelled:
            await self._end(turn, view, TurnState.CANCELLED)
        elif view.owner:
            await self._hand_on(turn, view)
        return True

    async def _hand_on(self, turn: Turn, view: LogView) -> None:
        """The broker lets a worker that is paused or cut off keep its deliveries: others get a copy, once an epoch.

        A dead one's come back by themselves, and by the second look somebody has claimed them: workers are told of it.
        """
        self._silent[turn.id, view.epoch] += 1
        if self._silent[turn.id, view.epoch] == 1:
            await self._dispatch.hint(turn.job)
        if self._silent[turn.id, view.epoch] == 2:
            _logger.warning("turn.handed_on", turn=turn.id, owner=view.owner)
            await self._dispatch.again(turn.job)

    async def _adopt(self, turn: Turn) -> None:
        """A turn that nobody has seen to for long: what has ended is told to the journal, what has not is run again.

        It cannot be waiting when its lane is empty; and a copy harms nobody.
        """
        view = await self._live.log.read(turn.id, after=0)
        if view is not None and view.ended:
            await self._ending.finish(turn.job, view.chunks)
        elif sum((await self._queue.depths([turn.job.lane])).values()) == 0:
            del self._ownerless_since[turn.id]
            _logger.warning("turn.orphaned", turn=turn.id)
            await self._dispatch.again(turn.job)

    async def _end(self, turn: Turn, view: LogView, state: TurnState) -> None:
        """Claims the job only to write its end."""
        epoch = await self._live.log.claim(turn.id, _OWNER, over=view.epoch)
        if epoch is None:
            return  # somebody else was quicker
        last = Chunk(first=view.last + 1, epoch=epoch, terminal=state)
        [answer] = await self._live.log.append([(turn.id, last)])
        if answer.status is AppendStatus.OK:
            await self._ending.finish(turn.job, [*view.chunks, last])
