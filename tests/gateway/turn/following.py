"""One job's stream, written by hand, and those who follow it. Tests nothing."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from unittest.mock import Mock

from axon.adapters.live.memory.live import MemoryLive, open_memory_live
from axon.domain.log.chunk import Chunk
from axon.domain.log.ownership import LogView
from axon.domain.turn import Turn
from axon.domain.wire import encode
from axon.errors import DependencyDown
from axon.gateway.offers.wait import Wait
from axon.gateway.turn.follow import Follower
from axon.gateway.turn.notices import Notices
from axon.gateway.turn.reader import Reader as Present
from axon.ports.live import stream_channel
from axon.runtime.clock import FakeClock
from axon.sessions.lookup import Lookup
from tests.contracts.builders import claim_epoch, make_chunk, make_ended, make_job

JOB = make_job("chatcmpl-1")
SILENCE_S, GRACE_S = 15.0, 30.0


class Turns:
    """The store's turns; how often it was asked, and behind how many barriers."""

    def __init__(self) -> None:
        self.stored: Turn | None = None
        self.num_asked = self.num_barriers = 0

    async def get(self, turn_id: str) -> Turn | None:
        self.num_asked += 1
        return self.stored

    async def barrier(self, *, timeout_s: float) -> None:
        self.num_barriers += 1


class Stream:
    """One job's stream, written by hand, and those who follow it."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock, self.turns = clock, Turns()
        self.live: MemoryLive = open_memory_live(clock, retention_s=3600.0)
        self.observer = Mock()
        lookup = Lookup(self.live, self.turns, self.turns, clock)  # type: ignore[arg-type]
        self.follower = Follower(
            self.live,
            self.turns,  # type: ignore[arg-type]
            lookup,
            clock,
            reader_grace_s=GRACE_S,
            silence_s=SILENCE_S,
            observer=self.observer,
        )
        self.epoch = 0
        self.num_log_reads = 0
        self.is_down = False
        self._read, self.live.log.read = self.live.log.read, self._counted  # type: ignore[method-assign]

    async def _counted(self, job_id: str, *, after: int) -> LogView | None:
        self.num_log_reads += 1
        if self.is_down:
            raise DependencyDown("away")
        return await self._read(job_id, after=after)

    async def open(self) -> None:
        await self.live.log.open(JOB.id, encode(JOB), reader_ttl_s=None)
        await self.claim()

    async def claim(self) -> None:
        """Another attempt begins."""
        epoch = await claim_epoch(self.live.log, JOB.id, "w1", over=self.epoch)
        self.epoch = epoch

    async def say(self, first: int, count: int = 1, *, terminal: str = "") -> None:
        await self.append(make_chunk(first, count, epoch=self.epoch, terminal=terminal))

    async def append(self, chunk: Chunk) -> None:
        await self.live.log.append([(JOB.id, chunk)])

    async def wake(self, payload: bytes = b"") -> None:
        """A hint comes, and whoever follows has time to heed it."""
        await settled()
        await self.live.wakeups.notify(stream_channel(JOB.id), payload)
        await settled()

    async def pass_s(self, seconds: float) -> None:
        await settled()
        self.clock.advance(seconds)
        await self.wake()

    @asynccontextmanager
    async def reader(
        self, after: int = 0, found: Turn | None = None, notices: Notices | None = None
    ) -> AsyncIterator["Reader"]:
        following = self.follower.follow(JOB.id, after=after, reader=Present(found=found), notices=notices)
        async with aclosing(following) as chunks:
            reader = Reader(chunks)
            try:
                yield reader
            finally:
                reader.task.cancel()
                await asyncio.wait([reader.task])


class Reader:
    """Reads as fast as it is told something."""

    def __init__(self, chunks: AsyncGenerator[Chunk | Wait | None, None]) -> None:
        self.ids: list[int] = []
        self.terminal = ""
        self.num_silences = 0
        self.waits: list[Wait] = []
        self.task = asyncio.create_task(self._read(chunks))

    async def _read(self, chunks: AsyncGenerator[Chunk | Wait | None, None]) -> None:
        async for chunk in chunks:
            if chunk is None:
                self.num_silences += 1
            elif isinstance(chunk, Wait):
                self.waits.append(chunk)
            else:
                self.ids += [token.id for token in chunk.tokens]
                self.terminal = chunk.terminal

    async def end(self) -> str:
        await self.task
        return self.terminal


async def settled() -> None:
    """Everything that does not wait for time has been done: the twins answer within a few steps of the loop."""
    for _ in range(50):
        await asyncio.sleep(0)


def complete(num_tokens: int) -> Turn:
    return make_ended(JOB, num_tokens=num_tokens)
