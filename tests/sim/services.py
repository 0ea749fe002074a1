"""The services of the simulated world: the twins, and doubles for what the twins do not do across processes."""

import asyncio
import itertools
import random
from collections.abc import Sequence

from axon.adapters.live.memory.accounts import MemoryAccounts
from axon.adapters.live.memory.cache import MemoryCache
from axon.adapters.live.memory.crowds import MemoryCrowds
from axon.adapters.live.memory.leases import MemoryLeases
from axon.adapters.live.memory.live import MemoryLive
from axon.adapters.live.memory.log import MemoryTokenLog
from axon.adapters.live.memory.pins import MemoryPins
from axon.adapters.live.memory.presences import MemoryPresences
from axon.adapters.live.memory.shares import MemoryShares
from axon.adapters.live.memory.wakeups import MemoryWakeups
from axon.adapters.queue.memory import MemoryBroker, MemoryQueue
from axon.domain import record
from axon.domain import turn as turns
from axon.domain.job import Job
from axon.domain.log.append import AppendStatus
from axon.domain.log.chunk import Chunk
from axon.domain.log.ownership import Claimed
from axon.domain.session.conversation import Conversation, Entry, entry_of
from axon.domain.session.pin import LastPin, last_pin
from axon.domain.turn import Turn
from axon.domain.wire import decode, encode
from axon.errors import DependencyDown
from axon.ports.journal import Pending, Record
from axon.ports.live import Appended, lifeline, stream_channel
from axon.ports.queue import Delivery
from axon.runtime.clock import Clock
from tests.sim.history import History


class SimTokenLog(MemoryTokenLog):
    """The twin, watched; sometimes it says the chunk itself on the channel, as Redis does."""

    def __init__(self, clock: Clock, wakeups: MemoryWakeups, history: History, rng: random.Random) -> None:
        super().__init__(clock, wakeups, retention_s=3600.0)
        self._history, self._rng = history, rng

    async def claim(self, job_id: str, owner: str, *, over: int) -> Claimed | None:
        before = self._streams.get(job_id)
        old_owner = before.owner if before else ""
        claimed = await super().claim(job_id, owner, over=over)
        if claimed is not None:
            self._history.claimed(job_id, owner, old_owner)
        return claimed

    async def append(self, batch: Sequence[tuple[str, Chunk]]) -> Sequence[Appended]:
        answers = await super().append(batch)
        for (job_id, chunk), answer in zip(batch, answers, strict=True):
            if answer.status is AppendStatus.OK:
                self._history.appended(job_id, chunk)
                if self._rng.random() < 0.5:
                    await self._wakeups.notify(stream_channel(job_id), encode(chunk))
        return answers

    async def flag(
        self,
        job_id: str,
        *,
        cancel: bool = False,
        asked: bool = False,
        refused: bool = False,
        reader_ttl_s: float | None = None,
    ) -> bool:
        heard = await super().flag(job_id, cancel=cancel, asked=asked, refused=refused, reader_ttl_s=reader_ttl_s)
        if cancel and heard:
            self._history.stopped(job_id, refused=refused)
        return heard

    def lose_everything(self) -> None:
        super().lose_everything()
        self._history.log_lost()

    def lose_some_tail(self) -> None:
        """A replica takes over that has not heard of the last appends of one stream."""
        running = [(job_id, stream) for job_id, stream in self._streams.items() if stream.chunks]
        if running:
            job_id, stream = self._rng.choice(running)
            keep = self._rng.choice([0, *[chunk.last for chunk in stream.chunks[:-1]]])
            self.lose_tail(job_id, keep)
            self._history.tail_lost(job_id, keep)


class SimWakeups(MemoryWakeups):
    """The twin, which hears at once when a process dies that listened."""

    def __init__(self, history: History) -> None:
        super().__init__()
        self._history = history

    async def counts(self, channels: Sequence[str]) -> Sequence[int | None]:
        dead = {lifeline(owner) for owner, process in self._history.owners.items() if not process.alive}
        found = await super().counts(channels)
        return [0 if channel in dead else count for channel, count in zip(channels, found, strict=True)]


def make_live(clock: Clock, history: History, rng: random.Random) -> MemoryLive:
    wakeups = SimWakeups(history)
    return MemoryLive(
        log=SimTokenLog(clock, wakeups, history, rng),
        leases=SimLeases(clock, history),
        accounts=MemoryAccounts(clock),
        crowds=MemoryCrowds(clock),
        shares=MemoryShares(),
        cache=MemoryCache(clock),
        pins=MemoryPins(clock),
        presences=MemoryPresences(clock),
        wakeups=wakeups,
    )


class SimJournal:
    """A queue of records that keeps all of them, repeats some and hands them out in almost the right order."""

    def __init__(self, history: History, markers: "SimMarkers", rng: random.Random) -> None:
        self._history, self._markers, self._rng = history, markers, rng
        self._tags = itertools.count(1)
        self.records: list[Record] = []
        self.arrived = asyncio.Event()

    async def append(self, turns: Sequence[Turn]) -> None:
        for turn in turns:
            self._history.journalled(turn)
            for _ in range(2 if self._rng.random() < 0.1 else 1):
                place = len(self.records) - (self._rng.random() < 0.2)
                self.records.insert(max(0, place), self._record(record.encode(turn)))
        self.arrived.set()

    async def barrier(self, *, timeout_s: float) -> None:
        tag = next(self._tags)
        self.records.append(self._record(record.encode(record.Marker(barrier=f"{tag:x}"))))
        self.arrived.set()
        try:
            async with asyncio.timeout(timeout_s):
                while not await self._markers.seen(f"{tag:x}"):  # noqa: ASYNC110 - as the real one does
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise DependencyDown("no row in time", code="journal_behind") from None

    def _record(self, body: bytes) -> Record:
        return Record(tag=next(self._tags), body=body)


class SimReader:
    """One persister's end of the journal. All are fed, which is worse than the real one."""

    def __init__(self, journal: SimJournal) -> None:
        self._journal = journal
        self._read: list[Record] = []

    async def read(self, limit: int) -> Sequence[Record]:
        while not self._journal.records:
            self._journal.arrived.clear()
            await self._journal.arrived.wait()
        self._read = self._journal.records[:limit]
        return self._read

    async def ack(self, last: Record) -> None:
        done = {each.tag for each in self._read[: self._read.index(last) + 1]} if last in self._read else set()
        self._journal.records = [each for each in self._journal.records if each.tag not in done]

    async def pending(self) -> Pending:
        return Pending(num_records=len(self._journal.records))

    async def set_aside(self, each: Record, reason: str) -> None:
        raise AssertionError(f"set aside: {reason}")


class SimMarkers:
    def __init__(self) -> None:
        self._seen: set[str] = set()

    async def put(self, marker_ids: Sequence[str], *, at: float) -> None:
        self._seen.update(marker_ids)

    async def seen(self, marker_id: str) -> bool:
        return marker_id in self._seen


class SimStore:
    """The turns table, as the statements of the real one treat it."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._turns: dict[str, Turn] = {}
        self.away = False

    def _answer(self) -> None:
        if self.away:
            raise DependencyDown("the store is away")

    async def apply(self, records: Sequence[Turn]) -> None:
        self._answer()
        for turn in records:
            stored = self._turns.get(turn.id)
            if turns.supersedes(turn, stored):
                self._turns[turn.id] = turn
                self._history.stored(turn, stored)

    async def write(self, records: Sequence[Turn]) -> Sequence[DependencyDown | None]:
        await self.apply(records)
        return [None] * len(records)

    async def get(self, turn_id: str) -> Turn | None:
        self._answer()
        return self._turns.get(turn_id)

    async def unfinished(self, *, limit: int, after: tuple[float, str] | None = None) -> Sequence[Turn]:
        self._answer()
        turns = sorted(self._turns.values(), key=_place)
        return [turn for turn in turns if not turn.state.terminal and (after is None or _place(turn) > after)][:limit]

    async def last_pin(self, key: str, *, session: str = "") -> LastPin | None:
        self._answer()
        return last_pin(turn for turn in self._turns.values() if turn.job.pin == key)

    async def purge(self, *, ended_before: float) -> int:
        self._answer()
        return 0

    async def entries(self, session: str, *, limit: int) -> Sequence[Entry]:
        self._answer()
        own = [entry_of(turn) for turn in self._turns.values() if turn.job.session == session]
        return sorted(own, key=lambda entry: (entry.ordinal, entry.at, entry.id))[-limit:]

    async def spent(self, tenant: str, *, since: float) -> int:
        """Tokens of the tenant's turns that have ended since."""
        self._answer()
        own = [turn for turn in self._turns.values() if turn.tenant == tenant and (turn.ended_at or 0.0) >= since]
        return sum(turn.usage.total_tokens for turn in own)

    @property
    def all(self) -> dict[str, Turn]:
        return self._turns


def _place(turn: Turn) -> tuple[float, str]:
    return turn.opened_at, turn.id


class SimConversations:
    """Every client has one, under its own name, and adds nothing to it by hand."""

    def __init__(self, store: SimStore) -> None:
        self._store = store

    async def get(self, conversation_id: str) -> Conversation:
        self._store._answer()
        return Conversation(id=conversation_id, tenant=conversation_id.removeprefix("conv_"), created_at=0.0)

    async def entries(self, conversation_id: str, *, limit: int) -> tuple[Sequence[Entry], frozenset[str]]:
        self._store._answer()
        return [], frozenset()


class SimQueue(MemoryQueue):
    """A connection that can break and be made again within an instant."""

    def __init__(self, broker: MemoryBroker, history: History, connections: list["SimQueue"]) -> None:
        super().__init__(broker)
        self._history, self._all = history, connections

    async def ack(self, delivery: Delivery) -> None:
        if delivery.tag in self._unacked:
            self._history.acked(decode(Job, delivery.body).id, self.count_copies(delivery) > 1)
        await super().ack(delivery)

    def count_copies(self, delivery: Delivery) -> int:
        """How often the queue has the same job, for itself or in somebody's hands."""
        waiting = [each.body for lane in self._broker._lanes.values() for each in lane]
        offered = [each.body for lane in self._broker._own.values() for _, each in lane]
        held = [each.body for queue in self._all for each in queue._unacked.values()]
        return [*waiting, *offered, *held].count(delivery.body)

    async def offer(self, own: str, lane: str, body: bytes) -> bool:
        is_in = await super().offer(own, lane, body)
        self._history.note(f"{decode(Job, body).id} {'offered' if is_in else 'not offered'} to {own}")
        return is_in

    def connect_now(self) -> None:
        self._open = True

    def drop(self) -> None:
        """What the broker does when a connection is gone: everything unacked returns, in order."""
        self._open = False
        for delivery in reversed(self._unacked.values()):
            self._broker.put_first(delivery)
        self._unacked.clear()

    def reconnect(self) -> None:
        self.drop()
        self.connect_now()

    @property
    def num_unacked(self) -> int:
        return len(self._unacked)


class SimLeases(MemoryLeases):
    """The twin, with the times since when each lease has held."""

    def __init__(self, clock: Clock, history: History) -> None:
        super().__init__(clock)
        self._history, self._clock = history, clock

        history.lease_holds = lambda owner: owner in self._leases

    async def hold(self, owner: str, ttl_s: float) -> None:
        if owner not in self._leases:
            self._history.held_since[owner] = self._clock.monotonic()
        await super().hold(owner, ttl_s)
