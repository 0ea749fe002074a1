"""The embedded journal: the store's own SQLite file, written by one task with group commit. As durable as the store.

There is no timer: records that arrive during a commit form the next one.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from axon.domain.turn import Turn
from axon.errors import AxonError, DependencyDown
from axon.ports.journal import Pending
from axon.runtime.clock import Clock, SystemClock

_logger = structlog.get_logger("axon.journal")


class TurnWriter(Protocol):
    """The part of a turn store that a journal needs."""

    async def write(self, turns: Sequence[Turn]) -> Sequence[DependencyDown | None]:
        """Commits the turns together; returns each one's failure or None, in order."""


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    """One caller's records, and the future that it awaits. Without records it is a barrier."""

    turns: tuple[Turn, ...]
    done: asyncio.Future[None]
    since: float
    """Monotonic time at which it came."""

    @property
    def weight(self) -> int:
        """Number of turns that this write counts for in the bounds; at least 1."""
        return max(1, len(self.turns))

    def settle(self, failure: AxonError | None) -> None:
        if self.done.done():  # its caller went away
            return
        if failure is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(_copy(failure))


class SqliteJournal:
    """``max_waiting`` records may wait at a time; ``max_batch`` of them share a commit."""

    def __init__(
        self, turns: TurnWriter, *, max_waiting: int = 10_000, max_batch: int = 512, clock: Clock | None = None
    ) -> None:
        self._turns = turns
        self._max_waiting = max_waiting
        self._max_batch = max_batch
        self._clock = clock or SystemClock()
        self._entries: deque[_Entry] = deque()
        self._committing: list[_Entry] = []
        self._num_waiting = 0
        self._arrived = asyncio.Event()
        self._closing = False
        self._writer: asyncio.Task[None] | None = None

    async def open(self) -> None:
        self._closing = False
        self._writer = asyncio.create_task(self._write(), name="journal-writer")

    async def aclose(self) -> None:
        """Refuses new records and returns when all accepted ones are written."""
        self._closing = True
        self._arrived.set()
        writer, self._writer = self._writer, None
        if writer is not None:
            await writer

    async def append(self, turns: Sequence[Turn]) -> None:
        if turns:
            await self._enter(tuple(turns))

    async def barrier(self, *, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._enter(())
        except TimeoutError:
            raise DependencyDown("The journal did not catch up in time.", code="journal_behind") from None

    async def pending(self) -> Pending:
        """Counts the records that are not committed yet; their size is not known before they are encoded."""
        entries = [*self._committing, *self._entries] if self._num_waiting else []
        oldest_s = max((self._clock.monotonic() - each.since for each in entries), default=0.0)
        return Pending(num_records=sum(len(each.turns) for each in entries), oldest_s=oldest_s)

    async def _enter(self, turns: tuple[Turn, ...]) -> None:
        if self._closing or self._writer is None or self._writer.done():
            raise DependencyDown("The journal is closed.")
        entry = _Entry(turns, asyncio.get_running_loop().create_future(), self._clock.monotonic())
        if self._num_waiting + entry.weight > self._max_waiting:
            raise DependencyDown("The journal cannot keep up.", code="journal_full")
        self._entries.append(entry)
        self._num_waiting += entry.weight
        self._arrived.set()
        await entry.done

    async def _write(self) -> None:
        try:
            while self._entries or not self._closing:
                if batch := self._next_batch():
                    await self._commit(batch)
                else:
                    self._arrived.clear()
                    await self._arrived.wait()
        finally:
            self._settle(list(self._entries), None)
            self._entries.clear()

    def _next_batch(self) -> list[_Entry]:
        """The next entries up to ``max_batch`` records; entries are not split, and at least one is taken."""
        batch = self._committing = []
        num_records = 0
        while self._entries and (not batch or num_records + self._entries[0].weight <= self._max_batch):
            batch.append(self._entries.popleft())
            num_records += batch[-1].weight
        return batch

    async def _commit(self, batch: list[_Entry]) -> None:
        records = [turn for entry in batch for turn in entry.turns]
        outcomes: Sequence[AxonError | None] | None = None
        try:
            outcomes = await self._turns.write(records) if records else []
        except Exception:
            _logger.exception("journal.commit_failed", turns=len(records))
        finally:
            self._settle(batch, outcomes)
            self._committing = []

    def _settle(self, entries: list[_Entry], outcomes: Sequence[AxonError | None] | None) -> None:
        """Completes each caller's future with its own outcome; outcomes None means that nothing is known to be
        written."""
        start = 0
        for entry in entries:
            end = start + len(entry.turns)
            own = [_unknown()] if outcomes is None else outcomes[start:end]
            entry.settle(next(filter(None, own), None))
            self._num_waiting -= entry.weight
            start = end


def _unknown() -> DependencyDown:
    return DependencyDown("The journal stopped before this was written.")


def _copy(failure: AxonError) -> AxonError:
    """A copy per caller, because a raised exception accumulates its raiser's traceback."""
    copy = type(failure)(failure.message, code=failure.code)
    copy.__cause__ = failure.__cause__
    return copy
