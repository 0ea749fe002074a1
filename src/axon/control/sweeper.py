"""Sweeper: recovers orphaned turns, expires turns past their deadline, renews tickets. Knows no engine."""

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
"""Largest number of turns whose tickets are renewed in one sweep."""
_PURGE_S = 10.0
"""Turns past their retention time are looked for this often, or ten times in the retention time if that is more."""
_HINTED_S = 1.0
"""Seconds after which the hint of a job that still waits is repeated."""
_OWNER = "sweeper"

_logger = structlog.get_logger("axon.control")


class Sweeper:
    """Call ``recover`` once at start, then ``run``."""

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
        """Ids of turns that have ended in the log and not yet in the store."""
        self._silent: Counter[tuple[str, int]] = Counter()
        """By turn id and epoch: how many sweeps have found the owner's lease expired."""
        self._config, self._retention_s, self._clock = config, retention_s, clock
        self._purged_at = float("-inf")

    async def recover(self) -> int:
        """Puts every unfinished turn on the queue, after a start with an empty queue and log; returns how many."""
        turns = await self._turns.unfinished(limit=1_000_000)
        for turn in turns:
            try:
                await self._readmit(turn.job)
                await self._dispatch.again(turn.job)
            except AxonError as error:
                _logger.error("turn.not_recovered", turn=turn.id, error=str(error))
                if error.code == LANE_UNKNOWN:
                    await self._give_up(turn)
                # Other errors are temporary: a later sweep recovers a turn without an owner.
        if turns:
            _logger.info("turns.recovered", count=len(turns))
        return len(turns)

    async def _give_up(self, turn: Turn) -> None:
        """Fails a turn whose deployment is no longer served, because no worker can ever run it."""
        message = f"The model '{turn.job.deployment}' it was asked of is not served here any more."
        last = Chunk(first=1, epoch=0, terminal=TurnState.FAILED, code=Failure.DEPLOYMENT_GONE, message=message)
        await self._ending.finish(turn.job, [last])

    async def run(self) -> None:
        """Sweeps while this process leads, until cancelled; a standby only watches for lost leases."""
        while True:
            await asyncio.sleep(self._config.sweep_s)
            try:
                await (self.sweep() if self._leads() else self._liveness.look())
            except AxonError as error:
                _logger.warning("sweep.failed", error=str(error))

    async def sweep(self) -> None:
        """Checks all unfinished turns once."""
        await self._liveness.look()
        unfinished = await self._turns.unfinished(limit=_BATCH)
        views = await self._views(unfinished)
        living = await self._liveness.living({view.owner for view in views.values() if view is not None})
        seen = [turn for turn in unfinished if turn.id in views]
        ownerless = [turn for turn in seen if await self._looked_at(turn, views[turn.id], living)]
        await self._hint_again([turn for turn in ownerless if _waits(views[turn.id])])
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
        if now - self._purged_at >= min(_PURGE_S, self._retention_s / 10):
            self._purged_at = now
            await self._turns.purge(ended_before=self._clock.now() - self._retention_s)

    async def _renew_tickets(self) -> None:
        """Renews the tickets of all unfinished turns; a worker also renews its own, waiting turns have only this."""
        if self._renew is not None:
            unfinished = await self._turns.unfinished(limit=_MOST)
            await self._renew([turn.job for turn in unfinished if turn.id not in self._ended])

    async def _views(self, turns: Sequence[Turn]) -> dict[str, LogView | None]:
        """The log's view of each turn, by its id; without those of which the log cannot tell."""
        ids = [turn.id for turn in turns]
        with contextlib.suppress(AxonError):
            return dict(zip(ids, await self._live.log.views(ids), strict=True))
        found: dict[str, LogView | None] = {}
        for id in ids:  # one by one: a part of the log may answer
            try:
                [found[id]] = await self._live.log.views([id])
            except AxonError as error:
                _logger.warning("turn.not_looked_at", turn=id, error=str(error))
        return found

    async def _hint_again(self, waiting: Sequence[Turn]) -> None:
        """Repeats the hint of one waiting turn in each lane: the first one may have been lost."""
        now = self._clock.now()
        jobs = [turn.job for turn in waiting if turn.job.created <= now - _HINTED_S and turn.job.deadline > now]
        for job in {job.lane: job for job in jobs}.values():
            await self._dispatch.hint(job)

    async def _looked_at(self, turn: Turn, view: LogView | None, living: frozenset[str]) -> bool:
        """Calls ``_ownerless``; a failure is logged, so that the other turns are still checked."""
        try:
            return await self._ownerless(turn, view, living)
        except AxonError as error:
            _logger.warning("turn.not_looked_at", turn=turn.id, error=str(error))
            return False

    async def _ownerless(self, turn: Turn, view: LogView | None, living: frozenset[str]) -> bool:
        """Whether the turn has no live owner. An expired or cancelled turn without one is ended here."""
        if view is None:
            return True
        if view.ended:
            self._ended.add(turn.id)
            return True
        if view.owner in living:
            return False
        if turn.job.deadline <= self._clock.now():
            await self._end(turn, view, TurnState.EXPIRED)
        elif view.cancelled:
            await self._end(turn, view, TurnState.CANCELLED)
        elif view.owner:
            await self._hand_on(turn, view)
        return True

    async def _hand_on(self, turn: Turn, view: LogView) -> None:
        """Enqueues a copy of a job whose owner's lease has expired, once per epoch.

        A dead worker's deliveries return by themselves, so the first sweep only sends a hint; by the second one another
        worker has claimed the job. But the broker leaves deliveries to a worker that is paused or cut off.
        """
        self._silent[turn.id, view.epoch] += 1
        if self._silent[turn.id, view.epoch] == 1:
            await self._dispatch.hint(turn.job)
        if self._silent[turn.id, view.epoch] == 2:
            _logger.warning("turn.handed_on", turn=turn.id, owner=view.owner)
            await self._dispatch.again(turn.job)

    async def _adopt(self, turn: Turn) -> None:
        """Recovers an orphaned turn: writes its end to the journal if it has ended, else enqueues it if its lane is
        empty.

        With an empty lane it cannot be waiting there; and a second copy does no harm.
        """
        view = await self._live.log.read(turn.id, after=0)
        if view is not None and view.ended:
            await self._ending.finish(turn.job, view.chunks)
        elif sum((await self._queue.depths([turn.job.lane])).values()) == 0:
            del self._ownerless_since[turn.id]
            _logger.warning("turn.orphaned", turn=turn.id)
            await self._dispatch.again(turn.job)

    async def _end(self, turn: Turn, view: LogView, state: TurnState) -> None:
        """Claims the job in order to write its terminal chunk."""
        epoch = await self._live.log.claim(turn.id, _OWNER, over=view.epoch)
        if epoch is None:
            return  # another process has claimed it meanwhile
        said = await self._live.log.read(turn.id, after=0)
        if said is None:
            return  # the log has lost it meanwhile: a later sweep ends the turn
        last = Chunk(first=said.last + 1, epoch=epoch, terminal=state)
        [answer] = await self._live.log.append([(turn.id, last)])
        if answer.status is AppendStatus.OK:
            await self._ending.finish(turn.job, [*said.chunks, last])


def _waits(view: LogView | None) -> bool:
    """Whether the job waits in a lane, as far as the log knows: nobody has it, and nothing has ended it."""
    return view is not None and not (view.owner or view.ended or view.cancelled)
