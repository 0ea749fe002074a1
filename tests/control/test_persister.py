"""The persister: everything reaches the store once, nothing is acked before it does, and no record blocks another."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace

import pytest

from axon.control.persister import Persister
from axon.domain import record
from axon.domain.turn import Turn, opened, supersedes
from axon.errors import DependencyDown
from axon.ports.journal import Pending, Record
from axon.runtime.clock import FakeClock
from tests.contracts.builders import make_ended, make_job


class Reader:
    """A journal in memory; what is not acked comes again after ``lose``."""

    def __init__(self) -> None:
        self.kept: list[Record] = []
        self.aside: list[tuple[bytes, str]] = []
        self.batches: list[int] = []
        self.away = False
        self._next = 0
        self._arrived = asyncio.Event()

    def append(self, *bodies: bytes) -> None:
        self.kept += [Record(tag=self._next + len(self.kept) + n, body=body) for n, body in enumerate(bodies)]
        self._arrived.set()

    def lose(self) -> None:
        self._next = 0
        self._arrived.set()

    async def read(self, limit: int) -> Sequence[Record]:
        while self._next >= len(self.kept):
            self._arrived.clear()
            await self._arrived.wait()
        batch = self.kept[self._next : self._next + limit]
        self._next += len(batch)
        self.batches.append(len(batch))
        return batch

    async def ack(self, last: Record) -> None:
        self._check()
        place = self.kept.index(last) + 1
        del self.kept[:place]
        self._next -= place

    async def pending(self) -> Pending:
        return Pending(num_records=len(self.kept))

    async def set_aside(self, record: Record, reason: str) -> None:
        self._check()
        self.aside.append((record.body, reason))

    def _check(self) -> None:
        if self.away:
            raise DependencyDown


@dataclass
class Store:
    """Turns and markers in memory, with the failures it is told to have."""

    turns: dict[str, Turn] = field(default_factory=dict)
    marked: list[str] = field(default_factory=list)
    away: bool = False
    refuses: set[str] = field(default_factory=set)
    breaks_over: set[str] = field(default_factory=set)
    num_calls: int = 0
    go: asyncio.Event = field(default_factory=asyncio.Event)

    async def write(self, turns: Sequence[Turn]) -> Sequence[DependencyDown | None]:
        self.num_calls += 1
        await self.go.wait()
        if self.breaks_over & {turn.id for turn in turns}:
            raise KeyError("a bug")
        return [self._write(turn) for turn in turns]

    async def put(self, marker_ids: Sequence[str], *, at: float) -> None:
        if self.away:
            raise DependencyDown
        self.marked += marker_ids

    async def seen(self, marker_id: str) -> bool:
        return marker_id in self.marked

    def _write(self, turn: Turn) -> DependencyDown | None:
        if self.away:
            return DependencyDown(code="storage_unavailable")
        if turn.id in self.refuses:
            return DependencyDown(code="record_refused")
        if supersedes(turn, self.turns.get(turn.id)):
            self.turns[turn.id] = turn
        return None


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
def store() -> Store:
    store = Store()
    store.go.set()
    return store


@asynccontextmanager
async def running(reader: Reader, store: Store, **options: object) -> AsyncIterator[Persister]:
    persister = Persister(reader, store, store, clock=FakeClock(), retry_s=0.001, **options)  # type: ignore[arg-type]
    task = asyncio.create_task(persister.run())
    try:
        yield persister
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def eventually(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60.0):
        while True:
            if true():
                return
            await asyncio.sleep(0)


def turn(number: int) -> Turn:
    return opened(make_job(f"turn_{number}"))


def marker(marker_id: str) -> bytes:
    return record.encode(record.Marker(barrier=marker_id))


def bodies(turns: Sequence[Turn]) -> list[bytes]:
    return [record.encode(each) for each in turns]


async def test_what_was_appended_is_written_and_then_acked(reader: Reader, store: Store) -> None:
    turns = [turn(number) for number in range(3)]
    reader.append(*bodies(turns))
    async with running(reader, store) as persister:
        await eventually(lambda: not reader.kept)
    assert list(store.turns.values()) == turns
    assert persister.counts.num_written == 3


async def test_what_comes_while_a_commit_runs_shares_the_next_up_to_the_bound(reader: Reader, store: Store) -> None:
    store.go.clear()
    reader.append(*bodies([turn(0)]))
    async with running(reader, store, max_batch=3):
        await eventually(lambda: store.num_calls == 1)
        reader.append(*bodies([turn(number) for number in range(1, 6)]))
        store.go.set()
        await eventually(lambda: not reader.kept)
    assert reader.batches == [1, 3, 2]


async def test_nothing_is_acked_while_the_store_is_away(reader: Reader, store: Store) -> None:
    store.away = True
    reader.append(*bodies([turn(0), turn(1)]), marker("aa"))
    async with running(reader, store) as persister:
        await eventually(lambda: persister.counts.num_retries >= 3)
        assert len(reader.kept) == 3
        assert store.marked == []
        store.away = False
        await eventually(lambda: not reader.kept)
    assert len(store.turns) == 2
    assert store.marked == ["aa"]
    assert reader.aside == []


async def test_a_record_nobody_can_read_is_set_aside_and_the_others_go_on(reader: Reader, store: Store) -> None:
    bad = [b"", b"\x80", b"junk", b"\x93\x01\x02\x03", marker("x\x00y"), b"\x91" * 5000]
    reader.append(*bodies([turn(0)]), *bad, *bodies([turn(1)]))
    async with running(reader, store) as persister:
        await eventually(lambda: not reader.kept)
    assert reader.aside == [(body, "record_unreadable") for body in bad]
    assert sorted(store.turns) == ["turn_0", "turn_1"]
    assert persister.counts.num_set_aside == len(bad)


async def test_a_record_the_store_refuses_is_set_aside_once(reader: Reader, store: Store) -> None:
    store.refuses = {"turn_1"}
    turns = [turn(number) for number in range(3)]
    reader.append(*bodies(turns))
    async with running(reader, store):
        await eventually(lambda: not reader.kept)
    assert reader.aside == [(record.encode(turns[1]), "record_refused")]
    assert sorted(store.turns) == ["turn_0", "turn_2"]


async def test_a_record_that_breaks_the_store_in_an_unforeseen_way_holds_up_no_other(
    reader: Reader, store: Store
) -> None:
    store.breaks_over = {"turn_1"}
    turns = [turn(number) for number in range(3)]
    reader.append(*bodies(turns), marker("aa"))
    async with running(reader, store):
        await eventually(lambda: not reader.kept)
    assert reader.aside == [(record.encode(turns[1]), "record_refused")]
    assert sorted(store.turns) == ["turn_0", "turn_2"]
    assert store.marked == ["aa"]


async def test_a_marker_is_noted_after_everything_before_it(reader: Reader, store: Store) -> None:
    store.go.clear()
    reader.append(*bodies([turn(0)]), marker("aa"))
    async with running(reader, store):
        await eventually(lambda: store.num_calls == 1)
        assert store.marked == []
        store.go.set()
        await eventually(lambda: store.marked == ["aa"])
    assert list(store.turns) == ["turn_0"]


async def test_records_that_come_twice_late_or_reordered_change_nothing(reader: Reader, store: Store) -> None:
    end = make_ended(make_job("turn_0"))
    reader.append(*bodies([end, opened(end.job), end, replace(end, code="other"), opened(end.job)]))
    async with running(reader, store, max_batch=2):
        await eventually(lambda: not reader.kept)
    assert store.turns == {"turn_0": end}


async def test_an_ack_that_fails_is_tried_again(reader: Reader, store: Store) -> None:
    reader.away = True
    reader.append(*bodies([turn(0)]))
    async with running(reader, store) as persister:
        await eventually(lambda: persister.counts.num_retries >= 2)
        reader.away = False
        await eventually(lambda: not reader.kept)
    assert list(store.turns) == ["turn_0"]


async def test_a_persister_that_is_stopped_amid_a_batch_leaves_it_to_the_next(reader: Reader, store: Store) -> None:
    store.go.clear()
    reader.append(*bodies([turn(0), turn(1)]))
    async with running(reader, store):
        await eventually(lambda: store.num_calls == 1)
    assert len(reader.kept) == 2
    store.go.set()
    reader.lose()
    async with running(reader, store):
        await eventually(lambda: not reader.kept)
    assert sorted(store.turns) == ["turn_0", "turn_1"]
