"""Finds a turn by its id: in the token log, in the journal on its way to the store, or in the store."""

import asyncio
import contextlib

from axon.domain.job import Job
from axon.domain.session.erasure import session_mark, turn_mark
from axon.domain.turn import Turn, TurnState, ended, opened
from axon.domain.wire import decode
from axon.errors import Busy, DependencyDown
from axon.ports.journal import Journal
from axon.ports.live import Live, stream_channel
from axon.ports.store import TurnStore
from axon.runtime.clock import Clock

_BARRIER_S = 2.0
_BEYOND = 1 << 53
_REREAD_S = 1.0
_KEPT_S = 0.05


def erased_key(mark: str) -> str:
    """Cache key of a tombstone, kept for as long as the token log may still hold the erased text."""
    return f"erased/{mark}"


class Lookup:
    """Finds turns; an erased turn is not found."""

    def __init__(self, live: Live, turns: TurnStore, journal: Journal, clock: Clock) -> None:
        self._live, self._turns, self._journal, self._clock = live, turns, journal, clock

    async def find(self, turn_id: str, *, asker: str | None = None) -> Turn | None:
        """The turn in its current state; None when it does not exist or was erased.

        For a turn of another tenant than ``asker`` the store is read all the same, so that the time taken does not
        reveal that the id exists.
        """
        turn = await self._standing(turn_id, asker=asker)
        if turn is None:
            stored = await self.stored(turn_id)
            return stored if stored is not None and asker in (None, stored.tenant) else None
        if await self.is_erased(turn):
            return None
        if turn.state is TurnState.COMPLETED:
            return turn
        try:  # a log that lost its tail has no end, or another end than the first one
            stored = await self._turns.get(turn_id)
        except DependencyDown:
            return turn
        return stored if stored is not None and stored.state.terminal else turn

    async def stored(self, turn_id: str) -> Turn | None:
        """The turn as the store has it after a barrier, because its record may still be in the journal."""
        await self.behind_barrier()
        return await self._turns.get(turn_id)

    async def in_log(self, turn_id: str) -> Turn | None:
        """The turn as the token log has it; None when the log has none, or when it was erased."""
        turn = await self._standing(turn_id)
        return None if turn is None or await self.is_erased(turn) else turn

    async def is_claimed(self, turn_id: str) -> bool:
        """Whether a worker has ever claimed it, which proves that it was accepted."""
        view = await self._live.log.read(turn_id, after=_BEYOND)
        return view is not None and view.epoch > 0

    async def is_erased(self, turn: Turn) -> bool:
        cache = self._live.cache
        if await cache.get(erased_key(turn_mark(turn.id))) is not None:
            return True
        session = turn.job.session
        return session != "" and await cache.get(erased_key(session_mark(session))) is not None

    async def ended(self, turn_id: str, *, wait_s: float) -> Turn | None:
        """Waits for the turn's end and returns it; raises ``Busy`` after ``wait_s`` seconds."""
        deadline = self._clock.monotonic() + wait_s
        async with self._live.wakeups.listen(stream_channel(turn_id)) as listener:
            while True:
                left_s = deadline - self._clock.monotonic()
                view = await self._live.log.read(turn_id, after=_BEYOND)
                if view is None or view.ended or left_s <= 0:
                    turn = await self.find(turn_id)
                    if turn is None or turn.state.terminal:
                        return turn
                if left_s <= 0:
                    raise Busy(retry_after_s=1.0)
                await listener.next(min(left_s, _REREAD_S))

    async def stopped(self, turn_id: str, *, wait_s: float, asked: bool = False) -> Turn | None:
        """Cancels the turn and waits for its end; raises ``Busy`` after ``wait_s`` seconds.

        ``asked`` says that its client asked for that.
        """
        await self._live.log.flag(turn_id, cancel=True, asked=asked)
        return await self.ended(turn_id, wait_s=wait_s)

    async def kept(self, turn_id: str, *, wait_s: float) -> bool:
        """Waits until the store has the turn's end, so that no crash can undo it; False after ``wait_s`` seconds."""
        deadline = self._clock.monotonic() + wait_s
        with contextlib.suppress(DependencyDown):
            await self.behind_barrier()
        while self._clock.monotonic() < deadline:
            with contextlib.suppress(DependencyDown):
                turn = await self._turns.get(turn_id)
                if turn is None or turn.state.terminal:
                    return True
            await asyncio.sleep(_KEPT_S)
        return False

    async def behind_barrier(self) -> None:
        """Returns when every record appended to the journal so far can be read in the store."""
        try:
            await self._journal.barrier(timeout_s=_BARRIER_S)
        except DependencyDown as error:
            message = "What was said before cannot be read just now; try again soon."
            raise DependencyDown(message, code="history_unavailable", retry_after_s=1.0) from error

    async def _standing(self, turn_id: str, *, asker: str | None = None) -> Turn | None:
        view = await self._live.log.read(turn_id, after=_BEYOND)
        if view is None:
            return None
        job = decode(Job, view.body)
        if asker not in (None, job.tenant):
            return None
        if view.ended:  # tokens are needed only of an ended turn
            view = await self._live.log.read(turn_id, after=0)
        if view is None:
            return None
        # A log may lose its tail between two reads, and with it the end.
        return ended(opened(job), view.chunks, at=self._clock.now()) if view.ended else opened(job)
