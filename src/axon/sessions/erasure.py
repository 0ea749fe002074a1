"""Erases the text of turns from store, journal, token log and cache. Usage stays, for the bill.

The tombstone is written first: from then on no record still in the journal can bring the text back.
"""

import contextlib
from collections.abc import Callable

from axon.domain.session.erasure import blocks_mark, session_mark, turn_mark
from axon.domain.turn import Turn, TurnState
from axon.errors import AxonError, Busy
from axon.ports.live import ERASURES, Live
from axon.ports.store import PinnedSessions, SessionTurns, Tombstones
from axon.runtime.clock import Clock
from axon.sessions.history import Histories
from axon.sessions.lookup import Lookup, erased_key

_STOP_S = 2.0
_MARGIN_S = 24 * 3600.0
"""Margin in seconds, longer than the token log keeps a stream that never ends."""


class Erasure:
    """Erases turns and sessions."""

    def __init__(
        self,
        live: Live,
        turns: SessionTurns,
        pinned: PinnedSessions,
        tombstones: Tombstones,
        lookup: Lookup,
        histories: Histories,
        clock: Clock,
        *,
        retention_s: float,
        on_erased: Callable[[], None] = lambda: None,
    ) -> None:
        """``on_erased`` is told of each session that is erased."""
        self._live, self._turns, self._pinned, self._tombstones = live, turns, pinned, tombstones
        self._lookup, self._histories, self._clock = lookup, histories, clock
        self._mark_s, self._on_erased = retention_s + _MARGIN_S, on_erased

    async def turn(self, turn: Turn) -> None:
        """Erases one turn; a running one is cancelled first."""
        session = turn.job.session
        blocks = blocks_mark(turn.id, session or turn.id)
        await self._bury(turn_mark(turn.id), session, blocks)
        await self._silence(turn.id, turn.state)
        await self._lookup.behind_barrier()  # records from before the tombstone are in the store then
        await self._turns.erase_turn(turn.id)
        await self._histories.drop_with_branches(session)
        await self._tell_workers(blocks)

    async def session(self, session: str) -> None:
        """Erases every turn of a session, and its pins."""
        pins = await self._pinned.keys(session)  # a turn that ends after the tombstone comes without its pin's key
        await self._bury(session_mark(session), session)
        await self._lookup.behind_barrier()
        for turn_id, state in (await self._turns.states(session)).items():
            await self._silence(turn_id, state)
        await self._lookup.behind_barrier()
        for key in {*pins, *await self._pinned.keys(session)}:
            await self._live.pins.drop(key)
        await self._turns.erase_session(session)
        await self._histories.drop_with_branches(session)
        await self._tell_workers(session_mark(session))
        self._on_erased()

    async def _bury(self, mark: str, session: str, *more: str) -> None:
        """Puts the tombstones, of which the first also hides the text from now on."""
        await self._tombstones.put([mark, *more], at=self._clock.now())
        await self._live.cache.put(erased_key(mark), b"", ttl_s=self._mark_s)
        await self._histories.drop_with_branches(session)

    async def _tell_workers(self, mark: str) -> None:
        """Has engines erase their copies of KV blocks now; who does not hear it finds the tombstone later."""
        with contextlib.suppress(AxonError):
            await self._live.wakeups.notify(ERASURES, mark.encode())

    async def _silence(self, turn_id: str, state: TurnState) -> None:
        """Cancels a running turn and deletes its stream; a stream that does not end in time expires by itself."""
        if not state.terminal:
            with contextlib.suppress(Busy):
                await self._lookup.stopped(turn_id, wait_s=_STOP_S)
        with contextlib.suppress(AxonError):
            await self._live.log.forget(turn_id, in_s=0)
