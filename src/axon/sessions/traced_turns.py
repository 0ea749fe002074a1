"""Turns with their times, for whoever looks at their traces: one by its id or its request's, or the last ones."""

import asyncio
from dataclasses import replace

from axon.domain.billing.ledger import latest
from axon.domain.tracing.slowest import Slowest, slowest
from axon.domain.turn import Turn, TurnState
from axon.ports.live import TokenLog
from axon.ports.store import EndedTurns
from axon.runtime.clock import Clock
from axon.sessions.lookup import Lookup

_MAX_TURNS = 2000
"""Turns that are looked at, at most: of the slowest, and for the one that a request id belongs to."""
_DAY_S = 24 * 3600.0


class TracedTurns:
    """Finds turns of all tenants. Their text is not needed, and mostly not read."""

    def __init__(self, lookup: Lookup, log: TokenLog, turns: EndedTurns, clock: Clock) -> None:
        self._lookup, self._log, self._turns, self._clock = lookup, log, turns, clock

    async def find(self, name: str) -> Turn | None:
        """The turn with this id, or else the last one of the request with this id among those that ended last. One
        that runs has the ledger that its workers have written so far, and ends now."""
        turn = await self._lookup.find(name)
        if turn is None:
            return await self._of_request(name)
        return _at_its_end(turn) if turn.state.terminal else await self._so_far(turn)

    async def slowest(self, *, since_s: float, most: int) -> Slowest:
        """What the slowest turns that ended in the last ``since_s`` seconds are made of; of many, the last 2,000 are
        looked at."""
        now = self._clock.now()
        turns = await self._turns.ended(since=now - since_s, limit=_MAX_TURNS)
        return await asyncio.to_thread(slowest, turns, most=most, now=now)

    async def _of_request(self, request: str) -> Turn | None:
        await self._lookup.behind_barrier()
        turns = await self._turns.ended(since=self._clock.now() - _DAY_S, limit=_MAX_TURNS)
        found = next((turn for turn in turns if _request_of(turn) == request), None)
        return None if found is None else await self.find(found.id)

    async def _so_far(self, turn: Turn) -> Turn:
        view = await self._log.read(turn.id, after=0)
        ledgers = [chunk.ledger for chunk in view.chunks if chunk.ledger is not None] if view is not None else []
        ledger = latest(ledgers, emitted=view.last if view is not None else 0)
        return replace(turn, state=TurnState.OPENED, ended_at=self._clock.now(), ledger=ledger)


def _at_its_end(turn: Turn) -> Turn:
    """The turn with the end that its ledger tells: one that was read from the token log does not know its own."""
    if turn.ledger is None or not turn.ledger.attempts:
        return turn
    return replace(turn, ended_at=turn.job.created + turn.ledger.whole_s)


def _request_of(turn: Turn) -> str:
    return turn.ledger.times.request if turn.ledger is not None and turn.ledger.times is not None else ""
