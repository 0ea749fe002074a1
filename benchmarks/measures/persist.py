"""From the journal into the store: how far behind it is at an even pace, and how fast a backlog goes in."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from axon.control.persister import Persister
from axon.domain.log.chunk import Chunk, End, Token
from axon.domain.turn import Turn, ended, opened
from axon.errors import DependencyDown
from axon.ports.store import TurnWriter
from axon.runtime.clock import SystemClock
from benchmarks.measures.figures import Figures, latencies_ms
from benchmarks.measures.stage import Stage, make_job

_AT_ONCE = 256
"""Appends of a backlog on their way together."""


class _Noted:
    """The store's turns, with a note of when each was committed."""

    def __init__(self, turns: TurnWriter) -> None:
        self._turns = turns
        self.committed_at: dict[str, float] = {}
        self.has_more = asyncio.Event()

    async def write(self, turns: Sequence[Turn]) -> Sequence[DependencyDown | None]:
        outcomes = await self._turns.write(turns)
        assert not any(outcomes), outcomes
        now = time.perf_counter()
        self.committed_at.update((turn.id, now) for turn in turns)
        self.has_more.set()
        return outcomes

    async def wait_for(self, num_turns: int) -> None:
        while len(self.committed_at) < num_turns:
            self.has_more.clear()
            await self.has_more.wait()


async def lag(stage: Stage, *, per_s: float, seconds: float) -> Figures:
    """From the call that appends an ended turn until its commit; the twin's journal is its store."""
    turns = [make_turn(number) for number in range(int(per_s * seconds))]
    asked_at: dict[str, float] = {}

    async def append(turn: Turn) -> None:
        asked_at[turn.id] = time.perf_counter()
        await stage.journal.append([turn])
        if stage.reader is None:
            noted.committed_at[turn.id] = time.perf_counter()

    async with _persisting(stage) as noted, asyncio.TaskGroup() as appends:
        started = time.perf_counter()
        for number, turn in enumerate(turns):
            await asyncio.sleep(started + number / per_s - time.perf_counter())
            appends.create_task(append(turn))
        await asyncio.sleep(0)
        if stage.reader is not None:
            await noted.wait_for(len(turns))
    return latencies_ms([noted.committed_at[turn_id] - at for turn_id, at in asked_at.items()])


async def drain(stage: Stage, *, num_turns: int) -> Figures:
    """A backlog of ended turns of 128 tokens; the twin has none, so there it is the rate of appends."""
    turns = [make_turn(number) for number in range(num_turns)]
    started = time.perf_counter()
    for start in range(0, num_turns, _AT_ONCE):
        await asyncio.gather(*(stage.journal.append([turn]) for turn in turns[start : start + _AT_ONCE]))
    appended_s = time.perf_counter() - started
    figures = {"appended turns/s": num_turns / appended_s}
    if stage.reader is None:
        return figures
    started = time.perf_counter()
    async with _persisting(stage) as noted:
        await noted.wait_for(num_turns)
        return {**figures, "stored turns/s": num_turns / (time.perf_counter() - started)}


@asynccontextmanager
async def _persisting(stage: Stage) -> AsyncIterator[_Noted]:
    """A persister at work, where the stage has one."""
    noted = _Noted(stage.store.turns)
    if stage.reader is None:
        yield noted
        return
    running = asyncio.create_task(Persister(stage.reader, noted, stage.store.markers, clock=SystemClock()).run())
    try:
        yield noted
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def make_turn(number: int, *, num_tokens: int = 128) -> Turn:
    """An ended one."""
    tokens = tuple(Token(0, 32 + place % 90, " word") for place in range(num_tokens))
    chunk = Chunk(first=1, epoch=1, tokens=tokens, ends=(End(0, "stop"),), terminal="completed")
    return ended(opened(make_job(number)), (chunk,), at=1_700_000_100.0)
