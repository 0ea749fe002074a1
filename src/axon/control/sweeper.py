"""Sweeper: recovers orphaned turns, ends those that nobody can answer any more, renews tickets. Knows no engine."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import structlog

from axon.control.config import ControlConfig
from axon.control.gone import GoneVersions
from axon.dispatch.dispatch import Dispatch
from axon.domain.billing.ledger import Ledger
from axon.domain.failure import Failure
from axon.domain.job import Job
from axon.domain.log.chunk import Chunk
from axon.domain.log.ownership import LogView
from axon.domain.turn import Turn, TurnState
from axon.errors import AxonError
from axon.ownership.ending import Ending
from axon.ownership.liveness import Liveness
from axon.ports.live import AppendStatus, Live
from axon.ports.queue import LANE_UNKNOWN, Queue
from axon.ports.store import TurnStore
from axon.runtime.clock import Clock
from axon.telemetry.logs import about

_AT_ONCE = 16
"""Turns that are looked at concurrently."""
_PURGE_S = 10.0
"""Turns past their retention time are looked for this often, or ten times in the retention time if that is more."""
_HINTED_S = 1.0
"""Seconds after which the hint of a job that still waits is repeated."""
_WATCHES_PER_SWEEP = 5
_HINTS = 3
"""How often the jobs of an owner whose lifeline is cut are hinted at: the first hint may come before the jobs are back
in their lanes."""
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
        gone: GoneVersions | None = None,
        page: int = 500,
    ) -> None:
        """``gone`` knows the versions that nobody will ever answer for; without it every turn waits for a worker.
        ``page`` turns are read from the store at a time."""
        self._turns, self._live, self._queue = turns, live, queue
        self._dispatch, self._ending, self._liveness = dispatch, ending, liveness
        self._readmit, self._leads, self._gone = readmit, leads, gone
        self._renew, self._renew_s, self._renewed_at = renew, renew_s, float("-inf")
        self._ownerless_since: dict[str, float] = {}
        self._ended: set[str] = set()
        """Ids of turns that have ended in the log and not yet in the store."""
        self._silent: Counter[tuple[str, int]] = Counter()
        """By turn id and epoch: how many sweeps have found the owner's lease expired."""
        self._owned: dict[str, dict[str, Job]] = {}
        """By owner and lane: one of the jobs that a live owner had at the last sweep."""
        self._num_hinted: Counter[str] = Counter()
        """How often the jobs of an owner whose lifeline is cut were hinted at."""
        self._config, self._retention_s, self._clock = config, retention_s, clock
        self._purged_at = float("-inf")
        self._page = page

    async def recover(self) -> int:
        """Puts every unfinished turn on the queue, after a start with an empty queue and log; returns how many."""
        num_turns = 0
        async for turns in self._pages():
            num_turns += len(turns)
            for turn in turns:
                await self._recover(turn)
        if num_turns:
            _logger.info("turns.recovered", count=num_turns)
        return num_turns

    async def _recover(self, turn: Turn) -> None:
        """Puts one turn on the queue. The dispatch declares the lane of a deployment that is served here, so an unknown
        lane is one of a deployment that is not. Other errors are temporary: a later sweep recovers the turn."""
        try:
            await self._readmit(turn.job)
            await self._dispatch.again(turn.job)
        except AxonError as error:
            _logger.error("turn.not_recovered", **about(turn.job), error=str(error))
            if error.code == LANE_UNKNOWN:
                await self._give_up(turn)

    async def _give_up(self, turn: Turn) -> None:
        """Fails a turn whose deployment is no longer served, because no worker can ever run it."""
        message = f"The model '{turn.job.deployment}' it was asked of is not served here any more."
        last = Chunk(first=1, epoch=0, terminal=TurnState.FAILED, code=Failure.DEPLOYMENT_GONE, message=message)
        await self._ending.finish(turn.job, [last])

    async def run(self) -> None:
        """Sweeps while this process leads, until cancelled; a standby only watches for lost leases."""
        while True:
            for _ in range(_WATCHES_PER_SWEEP):
                await asyncio.sleep(self._config.sweep_s / _WATCHES_PER_SWEEP)
                with contextlib.suppress(AxonError):
                    await self.watch()
            try:
                await (self.sweep() if self._leads() else self._liveness.look())
            except AxonError as error:
                _logger.warning("sweep.failed", error=str(error))

    async def watch(self) -> None:
        """Tells workers to look for the jobs of an owner whose lifeline is cut: the queue delivers them again, and says
        so to nobody."""
        if not self._leads():
            return
        cut_off = await self._liveness.cut_off(self._owned)
        for owner in [owner for owner in self._owned if owner in cut_off]:
            self._num_hinted[owner] += 1
            if self._num_hinted[owner] <= _HINTS:
                for job in self._owned[owner].values():
                    await self._dispatch.hint(job)

    async def sweep(self) -> None:
        """Checks all unfinished turns once, page by page."""
        await self._liveness.look()
        if self._gone is not None:
            self._gone.look()
        now = self._clock.monotonic()
        renews = now - self._renewed_at >= self._renew_s
        self._renewed_at = now if renews else self._renewed_at
        ownerless_since: dict[str, float] = {}
        unfinished_ids: set[str] = set()
        self._owned = {}
        async for turns in self._pages():
            unfinished_ids.update(turn.id for turn in turns)
            for turn in await self._ownerless_of(turns):
                since = self._ownerless_since.get(turn.id, now)
                if now - since < self._config.orphan_s or not await self._is_adopted(turn):
                    ownerless_since[turn.id] = since
            if renews:
                await self._renew_tickets(turns)
        self._ownerless_since = ownerless_since
        self._silent = Counter({seen: num for seen, num in self._silent.items() if seen[0] in unfinished_ids})
        self._num_hinted = Counter({owner: num for owner, num in self._num_hinted.items() if owner in self._owned})
        self._ended &= unfinished_ids
        if now - self._purged_at >= min(_PURGE_S, self._retention_s / 10):
            self._purged_at = now
            await self._turns.purge(ended_before=self._clock.now() - self._retention_s)

    async def _pages(self) -> AsyncIterator[Sequence[Turn]]:
        """All unfinished turns, the oldest first, a page at a time."""
        after: tuple[float, str] | None = None
        while turns := await self._turns.unfinished(limit=self._page, after=after):
            after = turns[-1].opened_at, turns[-1].id
            yield turns

    async def _ownerless_of(self, turns: Sequence[Turn]) -> list[Turn]:
        """The turns without a live owner; those that wait in their lanes are hinted at again."""
        views = await self._views(turns)
        living = await self._liveness.living({view.owner for view in views.values() if view is not None})
        for turn in turns:
            if (view := views.get(turn.id)) is not None and view.owner in living:
                self._owned.setdefault(view.owner, {})[turn.job.lane] = turn.job
        seen = [turn for turn in turns if turn.id in views]
        found: list[Turn] = []
        for first in range(0, len(seen), _AT_ONCE):
            some = seen[first : first + _AT_ONCE]
            answers = await asyncio.gather(*(self._looked_at(turn, views[turn.id], living) for turn in some))
            found += [turn for turn, is_ownerless in zip(some, answers, strict=True) if is_ownerless]
        await self._hint_again([turn for turn in found if _waits(views[turn.id])])
        return found

    async def _renew_tickets(self, turns: Sequence[Turn]) -> None:
        """Renews the tickets of unfinished turns; a worker also renews its own, waiting turns have only this."""
        if self._renew is None:
            return
        try:
            await self._renew([turn.job for turn in turns if turn.id not in self._ended])
        except AxonError as error:
            _logger.warning("tickets.not_renewed", turns=len(turns), error=str(error))

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
            _logger.warning("turn.not_looked_at", **about(turn.job), error=str(error))
            return False

    async def _ownerless(self, turn: Turn, view: LogView | None, living: frozenset[str]) -> bool:
        """Whether the turn has no live owner. An expired or cancelled one, or one whose version is gone, is ended."""
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
        elif self._gone is not None and await self._gone.is_gone(turn.job):
            message = "The model version it was asked of is gone."
            await self._end(turn, view, TurnState.FAILED, code=Failure.VERSION_GONE, message=message)
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
            _logger.warning("turn.handed_on", **about(turn.job), owner=view.owner)
            await self._dispatch.again(turn.job)

    async def _is_adopted(self, turn: Turn) -> bool:
        """Recovers an orphaned turn: writes its end to the journal if it has ended, else enqueues it if its lane is
        empty, and returns True then. With an empty lane it cannot be waiting there; and a second copy does no harm."""
        with contextlib.suppress(AxonError):
            view = await self._live.log.read(turn.id, after=0)
            if view is not None and view.ended:
                await self._ending.finish(turn.job, view.chunks)
            elif sum((await self._queue.depths([turn.job.lane])).values()) == 0:
                _logger.warning("turn.orphaned", **about(turn.job))
                await self._dispatch.again(turn.job)
                return True
        return False

    async def _end(self, turn: Turn, view: LogView, state: TurnState, *, code: str = "", message: str = "") -> None:
        """Claims the job in order to write its terminal chunk."""
        claimed = await self._live.log.claim(turn.id, _OWNER, over=view.epoch)
        if claimed is None:
            return  # another process has claimed it meanwhile
        said = await self._live.log.read(turn.id, after=0)
        if said is None:
            return  # the log has lost it meanwhile: a later sweep ends the turn
        unbegun = None if view.epoch else Ledger(queue_s=max(0.0, self._clock.now() - turn.job.created))
        last = Chunk(
            first=said.last + 1, epoch=claimed.epoch, terminal=state, code=code, message=message, ledger=unbegun
        )
        [answer] = await self._live.log.append([(turn.id, last)])
        if answer.status is AppendStatus.OK:
            await self._ending.finish(turn.job, [*said.chunks, last])


def _waits(view: LogView | None) -> bool:
    """Whether the job waits in a lane, as far as the log knows: nobody has it, and nothing has ended it."""
    return view is not None and not (view.owner or view.ended or view.cancelled)
