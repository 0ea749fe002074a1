"""Copies the journal into the store, in batches. Knows neither broker nor database.

There is no timer (group commit): records that arrive during a commit form the next batch. A record is acked after its
commit, so after any failure it comes again, and the store applies it once. While the store is away nothing is acked and
the broker keeps the records. A record that the store will never accept is set aside and counted, and blocks no other.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import structlog

from axon.domain import record
from axon.domain.turn import Turn
from axon.errors import DependencyDown
from axon.ports.journal import JournalReader, Record
from axon.ports.store import Markers, TurnWriter
from axon.runtime.clock import Clock

T = TypeVar("T")
_logger = structlog.get_logger("axon.control")


@dataclass(slots=True)
class PersisterCounts:
    """Counts since the start of the process."""

    num_written: int = 0
    num_set_aside: int = 0
    num_retries: int = 0


class Persister:
    """``run`` until cancelled. Several may run: the journal feeds one of them."""

    def __init__(
        self,
        reader: JournalReader,
        turns: TurnWriter,
        markers: Markers,
        *,
        clock: Clock,
        max_batch: int = 500,
        retry_s: float = 0.1,
        max_retry_s: float = 2.0,
        on_aside: Callable[[], None] = lambda: None,
    ) -> None:
        """``on_aside`` is told of each record that is set aside."""
        self._on_aside, self.pending = on_aside, reader.pending
        self._reader, self._turns, self._markers = reader, turns, markers
        self._clock = clock
        self._max_batch = max_batch
        self._retry_s, self._max_retry_s = retry_s, max_retry_s
        self.counts = PersisterCounts()

    async def run(self) -> None:
        while True:
            await self.settle(await self._patiently(lambda: self._reader.read(self._max_batch)))

    async def settle(self, records: Sequence[Record]) -> None:
        """Writes a batch and acks it, with retries for ever: while this process is connected, no other gets the
        batch."""
        batch = record.sort([each.body for each in records])
        await self._write(records, batch.turns)
        for number in batch.unreadable:
            await self._set_aside(records[number], record.UNREADABLE)
        if batch.marker_ids:
            await self._patiently(lambda: self._markers.put(batch.marker_ids, at=self._clock.now()))
        await self._patiently(lambda: self._reader.ack(records[-1]))

    async def _write(self, records: Sequence[Record], turns: Sequence[tuple[int, Turn]]) -> None:
        for wait_s in self._waits():
            verdict = record.judge(turns, await self._outcomes([turn for _, turn in turns]))
            self.counts.num_written += len(turns) - len(verdict.aside) - len(verdict.again)
            for number, reason in verdict.aside:
                await self._set_aside(records[number], reason)
            turns = verdict.again
            if not turns:
                return
            await self._pause(wait_s, "the store took no record")

    async def _outcomes(self, turns: Sequence[Turn]) -> Sequence[DependencyDown | None]:
        """Writes turns; after an unexpected exception writes them one by one, so that only the bad one is refused."""
        try:
            return await self._turns.write(turns) if turns else []
        except DependencyDown as failure:
            return [failure] * len(turns)
        except Exception:
            _logger.exception("persister.write_broke", num_records=len(turns))
        if len(turns) == 1:
            return [DependencyDown("The store broke over this record.", code=record.REFUSED)]
        return [(await self._outcomes([turn]))[0] for turn in turns]

    async def _set_aside(self, each: Record, reason: str) -> None:
        """Sets a record aside. A crash before the ack repeats it, so the same record may be found twice."""
        await self._patiently(lambda: self._reader.set_aside(each, reason))
        self.counts.num_set_aside += 1
        self._on_aside()
        _logger.error("persister.record_set_aside", reason=reason, num_bytes=len(each.body))

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """Retries with exponential backoff until the call succeeds."""
        for wait_s in self._waits():
            try:
                return await call()
            except DependencyDown as failure:
                await self._pause(wait_s, failure.message)
        raise AssertionError("waits never end")

    def _waits(self) -> Iterator[float]:
        wait_s = self._retry_s
        while True:
            yield wait_s
            wait_s = min(2 * wait_s, self._max_retry_s)

    async def _pause(self, wait_s: float, cause: str) -> None:
        self.counts.num_retries += 1
        _logger.warning("persister.waits", error=cause, retry_s=wait_s)
        await asyncio.sleep(wait_s)
