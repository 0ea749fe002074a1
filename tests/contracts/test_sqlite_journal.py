"""The journal twin's own: how it groups commits, its bound, its end."""

import asyncio
from collections.abc import Sequence

import pytest

from axon.adapters.journal.sqlite import SqliteJournal
from axon.domain.turn import Turn, opened
from axon.errors import DependencyDown
from tests.contracts.builders import make_job


class SlowWriter:
    """Holds every commit until it is let go; then does what it is told."""

    def __init__(self, *, held: bool = True) -> None:
        self.batches: list[list[str]] = []
        self.go = asyncio.Event()
        self.error: Exception | None = None
        if not held:
            self.go.set()

    async def write(self, turns: Sequence[Turn]) -> Sequence[DependencyDown | None]:
        self.batches.append([turn.id for turn in turns])
        await self.go.wait()
        if self.error is not None:
            raise self.error
        return [None] * len(turns)


def turn(turn_id: str) -> Turn:
    return opened(make_job(turn_id))


async def enter(tasks: asyncio.TaskGroup, journal: SqliteJournal, *turn_ids: str) -> list[asyncio.Task[None]]:
    """Appends one call each and lets them and the writer run up to where they wait."""
    calls = [tasks.create_task(journal.append([turn(turn_id)])) for turn_id in turn_ids]
    for _ in range(3):
        await asyncio.sleep(0)
    return calls


async def test_what_waits_while_a_commit_runs_shares_the_next() -> None:
    writer = SlowWriter()
    journal = SqliteJournal(writer)
    await journal.open()
    async with asyncio.TaskGroup() as tasks:
        await enter(tasks, journal, "a")
        await enter(tasks, journal, "b", "c", "d")
        writer.go.set()
    assert writer.batches == [["a"], ["b", "c", "d"]]
    await journal.aclose()


async def test_a_commit_takes_no_more_than_its_bound() -> None:
    writer = SlowWriter()
    journal = SqliteJournal(writer, max_batch=2)
    await journal.open()
    async with asyncio.TaskGroup() as tasks:
        await enter(tasks, journal, "a")
        await enter(tasks, journal, "b", "c", "d")
        writer.go.set()
    assert writer.batches == [["a"], ["b", "c"], ["d"]]
    await journal.aclose()


async def test_a_full_journal_refuses_at_once_and_recovers() -> None:
    writer = SlowWriter()
    journal = SqliteJournal(writer, max_waiting=2)
    await journal.open()
    async with asyncio.TaskGroup() as tasks:
        await enter(tasks, journal, "a", "b")
        with pytest.raises(DependencyDown) as refusal:
            await journal.append([turn("c")])
        assert refusal.value.code == "journal_full"
        writer.go.set()
    await journal.append([turn("d")])
    await journal.aclose()


async def test_closing_writes_what_was_taken_and_takes_no_more() -> None:
    writer = SlowWriter()
    journal = SqliteJournal(writer)
    await journal.open()
    async with asyncio.TaskGroup() as tasks:
        await enter(tasks, journal, "a", "b")
        closing = tasks.create_task(journal.aclose())
        await asyncio.sleep(0)
        with pytest.raises(DependencyDown):
            await journal.append([turn("late")])
        assert not closing.done()
        writer.go.set()
    assert [turn_id for batch in writer.batches for turn_id in batch] == ["a", "b"]


async def test_a_journal_that_is_not_open_refuses() -> None:
    journal = SqliteJournal(SlowWriter())
    with pytest.raises(DependencyDown):
        await journal.append([turn("a")])
    with pytest.raises(DependencyDown):
        await journal.barrier(timeout_s=30.0)
    await journal.aclose()


async def test_a_barrier_that_is_not_passed_in_time_says_so() -> None:
    writer = SlowWriter()
    journal = SqliteJournal(writer)
    await journal.open()
    async with asyncio.TaskGroup() as tasks:
        await enter(tasks, journal, "a")
        with pytest.raises(DependencyDown) as late:
            await journal.barrier(timeout_s=0.01)
        assert late.value.code == "journal_behind"
        writer.go.set()
    await journal.aclose()


async def test_a_writer_that_breaks_fails_its_batch_and_the_next_goes_on() -> None:
    writer = SlowWriter(held=False)
    journal = SqliteJournal(writer)
    await journal.open()
    writer.error = RuntimeError("a bug")
    with pytest.raises(DependencyDown):
        await journal.append([turn("a")])
    writer.error = None
    await journal.append([turn("b")])
    await journal.aclose()


async def test_an_interrupted_close_leaves_no_caller_waiting() -> None:
    journal = SqliteJournal(SlowWriter())
    await journal.open()
    calls = [asyncio.ensure_future(journal.append([turn(turn_id)])) for turn_id in "ab"]
    calls.append(asyncio.ensure_future(journal.barrier(timeout_s=30.0)))
    await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await journal.aclose()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(result) for result in results] == [DependencyDown] * 3
