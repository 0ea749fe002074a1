"""Sessions on the twins, with a journal that lags when it is told to, and turns that are answered by hand."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from axon.adapters.live.memory.live import MemoryLive, open_memory_live
from axon.adapters.store.sqlite import SqliteStore
from axon.domain.content.item import Item
from axon.domain.job import Job
from axon.domain.log.chunk import Chunk, End, Token
from axon.domain.reply import OtherReply
from axon.domain.session.conversation import History
from axon.domain.turn import Turn, opened
from axon.domain.wire import encode
from axon.errors import DependencyDown
from axon.ownership.ending import Ending
from axon.runtime.clock import SystemClock
from axon.sessions.config import SessionsConfig
from axon.sessions.sessions import make_sessions
from tests.contracts.builders import claim_epoch, make_job

TENANT = "acme"


class LaggingJournal:
    """Records reach the store at a barrier, or never while it is stuck."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.records: list[Turn] = []
        self.stuck = False
        self._writing = asyncio.Lock()

    async def append(self, turns: Sequence[Turn]) -> None:
        self.records += turns

    async def barrier(self, *, timeout_s: float) -> None:
        if self.stuck:
            raise DependencyDown("behind", code="journal_behind")
        async with self._writing:  # who comes while another's records are written waits for them too
            written, self.records = self.records, []
            await self._store.turns.apply(written)


class CountedTurns:
    """The turn store, with its reads counted; it can be away."""

    def __init__(self, turns: Any) -> None:
        self._turns = turns
        self.num_reads = 0
        self.away = False

    def __getattr__(self, name: str) -> Any:
        self.num_reads += 1
        if self.away:
            raise DependencyDown("away")
        return getattr(self._turns, name)


class Kept:
    """One gateway's sessions and all that stands behind them."""

    def __init__(self, store: SqliteStore, live: MemoryLive) -> None:
        self.live, self.store = live, store
        self.journal = LaggingJournal(store)
        self.turns = CountedTurns(store.turns)
        clock, config = SystemClock(), SessionsConfig(busy_wait_s=0.05)
        self.pinned = CountedTurns(store.pinned)
        self.moves: list[str] = []
        seen: Any = _Seen(store, self.turns, self.pinned)
        self.sessions = make_sessions(live, seen, self.journal, clock, config, self.moves.append)
        self.histories, self.conversations = self.sessions.histories, self.sessions.conversations
        self.erasure, self.lookup = self.sessions.erasure, self.sessions.lookup
        self._ending = Ending(self.journal, _settle, clock)
        self._num_turns = 0

    async def open(self, text: str, *, previous: str = "", conversation: str = "", wait_s: float = 0.05) -> Job:
        """A turn, accepted and not begun on; ``heard`` is what it was told before."""
        self._num_turns += 1
        job_id = f"resp_{self._num_turns}"
        async with AsyncExitStack() as held:
            history = await self._history(held, job_id, previous, conversation, wait_s)
            job = replace(
                make_job(job_id, retain=True, created=float(self._num_turns)),
                session=history.session,
                ordinal=history.ordinal + 1,
                previous=previous,
                items=(Item(id=f"msg_in_{self._num_turns}", role="user", texts=(text,)),),
                reply=OtherReply(name="heard", extra={"heard": [item.text for item in history.items]}),
            )
            await self.live.log.open(job.id, encode(job), reader_ttl_s=None)
            await self.journal.append([opened(job)])
        return job

    async def answer(self, job: Job, text: str, state: str = "completed", reason: str = "stop") -> Job:
        """Ends an accepted turn as a worker does."""
        epoch = await claim_epoch(self.live.log, job.id, "w1", over=0)
        end = Chunk(first=1, epoch=epoch, tokens=(Token(0, 1, text),), ends=(End(0, reason),), terminal=state)
        await self.end(job, end)
        return job

    async def end(self, job: Job, chunk: Chunk) -> None:
        """Writes the one chunk that a claimed turn has, and what comes after it."""
        await self.live.log.append([(job.id, chunk)])
        await self._ending.finish(job, [chunk])

    async def end_again(self, job: Job, *, state: str) -> None:
        """The log loses what an ended turn has said, and another worker, to whom it is delivered, ends it otherwise."""
        await self.journal.barrier(timeout_s=30.0)
        self.live.log.lose_tail(job.id, keep=0)
        view = await self.live.log.read(job.id, after=0)
        assert view is not None
        epoch = await claim_epoch(self.live.log, job.id, "w2", over=view.epoch)
        await self.end(job, Chunk(first=1, epoch=epoch, tokens=(), ends=(), terminal=state))

    async def say(self, text: str, **where: Any) -> Job:
        """A whole turn, answered with the text in capitals."""
        return await self.answer(await self.open(text, **where), text.upper())

    async def _history(
        self, held: AsyncExitStack, job_id: str, previous: str, conversation: str, wait_s: float
    ) -> History:
        if conversation:
            return await self.histories.enter(held, TENANT, conversation, job_id, wait_s=wait_s)
        if not previous:
            return History(session=job_id)
        history = await self.histories.of_turn(TENANT, previous, wait_s=wait_s)
        return await self.histories.go_on(TENANT, history, job_id)


class _Seen:
    """The store with its turns watched."""

    def __init__(self, store: SqliteStore, turns: CountedTurns, pinned: CountedTurns) -> None:
        self.turns = turns
        self.conversations, self.tombstones, self.pinned = store.conversations, store.tombstones, pinned


def heard(job: Job) -> str:
    """What a turn was told before it."""
    return " ".join(job.reply.extra["heard"])


async def _settle(job: Job, num_tokens: int) -> None:
    return None


@asynccontextmanager
async def open_kept(folder: Path) -> AsyncIterator[Kept]:
    store = SqliteStore(folder / "axon.db")
    await store.open()
    try:
        yield Kept(store, open_memory_live(SystemClock(), retention_s=60.0))
    finally:
        await store.aclose()
