"""The RabbitMQ journal's own: persisters that die, a broker that dies, records that nobody can write."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiormq
import pytest

from axon.adapters.amqp import TIMEOUT_S, Publisher
from axon.adapters.journal.rabbitmq import RabbitJournal, journal_name
from axon.adapters.journal.rabbitmq_reader import RabbitJournalReader
from axon.adapters.store.sqlite import SqliteStore
from axon.domain import record
from axon.domain.turn import Turn, opened
from axon.errors import DependencyDown
from tests.contracts.builders import make_ended, make_job
from tests.contracts.rabbitmq_backend import persisting
from tests.services.rabbitmq import new_prefix, shared_server, started_victim

pytestmark = pytest.mark.services


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path / "axon.db")
    await store.open()
    yield store
    await store.aclose()


@asynccontextmanager
async def opened_journal(url: str, prefix: str, store: SqliteStore) -> AsyncIterator[RabbitJournal]:
    timeout_s = 30.0 if url == shared_server().url else TIMEOUT_S  # what nobody breaks may be slow on busy cores
    journal = RabbitJournal(url, prefix, markers=store.markers, timeout_s=timeout_s)
    await journal.open()
    try:
        yield journal
    finally:
        await journal.aclose()


def turns(count: int) -> list[Turn]:
    return [opened(make_job(f"turn_{number}")) for number in range(count)]


async def eventually(true: Callable[[], bool], timeout_s: float = 10.0) -> None:
    async with asyncio.timeout(timeout_s):
        while True:
            if true():
                return
            await asyncio.sleep(0.02)


async def behind_a_barrier(journal: RabbitJournal, timeout_s: float = 60.0) -> None:
    """Waits for a barrier to be passed, while the broker may still be coming back."""
    async with asyncio.timeout(timeout_s):
        while True:
            try:
                await journal.barrier(timeout_s=5.0)
            except DependencyDown:
                await asyncio.sleep(0.05)
            else:
                return


async def waiting(url: str, queue: str) -> int:
    connection = await aiormq.connect(url)
    channel = await connection.channel()
    answer = await channel.queue_declare(queue, passive=True)
    await connection.close()
    return answer.message_count or 0


async def test_without_a_persister_a_barrier_is_not_passed_and_nothing_is_lost(store: SqliteStore) -> None:
    url, prefix = shared_server().url, new_prefix()
    async with opened_journal(url, prefix, store) as journal:
        await journal.append(turns(3))
        with pytest.raises(DependencyDown) as late:
            await journal.barrier(timeout_s=0.1)
        assert late.value.code == "journal_behind"
        async with persisting(url, prefix, store):
            await journal.barrier(timeout_s=30.0)
        assert await store.turns.unfinished(limit=10) == turns(3)


async def test_of_two_persisters_one_works_and_the_other_takes_over_with_nothing_lost(store: SqliteStore) -> None:
    url, prefix = shared_server().url, new_prefix()
    async with opened_journal(url, prefix, store) as journal:
        async with persisting(url, prefix, store) as first:
            await journal.append(turns(50))
            await journal.barrier(timeout_s=30.0)
            async with persisting(url, prefix, store) as second:
                await journal.append(turns(100)[50:])
                await journal.barrier(timeout_s=30.0)
                assert (first.counts.num_written, second.counts.num_written) == (100, 0)
        async with persisting(url, prefix, store) as third:
            await journal.append(turns(150)[100:])
            await journal.barrier(timeout_s=30.0)
            assert third.counts.num_written == 50
        assert len(await store.turns.unfinished(limit=1000)) == 150


async def test_a_persister_that_dies_with_records_in_hand_leaves_them_to_the_next_in_order(store: SqliteStore) -> None:
    url, prefix = shared_server().url, new_prefix()
    async with opened_journal(url, prefix, store) as journal:
        dying, next_reader = RabbitJournalReader(url, prefix), RabbitJournalReader(url, prefix)
        await dying.open()
        await next_reader.open()
        await journal.append(turns(20))
        held = list(await dying.read(5))
        while len(held) < 20:
            held += await dying.read(5)
        await dying.ack(held[4])
        standby = asyncio.ensure_future(next_reader.read(1))
        await asyncio.wait([standby], timeout=0.2)
        assert not standby.done()
        await dying.aclose()
        await dying.ack(held[10])  # of a lost connection: harmless
        back = list(await standby)
        while len(back) < 15:
            back += await next_reader.read(100)
        assert [record.decode(each.body) for each in back] == turns(20)[5:]
        await next_reader.aclose()


async def test_a_reader_holds_no_more_than_it_may(store: SqliteStore) -> None:
    url, prefix = shared_server().url, new_prefix()
    async with opened_journal(url, prefix, store) as journal:
        reader = RabbitJournalReader(url, prefix, prefetch=10)
        await reader.open()
        await journal.append(turns(100))
        held = list(await reader.read(100))
        while len(held) < 10:
            held += await reader.read(100)
        more = asyncio.ensure_future(reader.read(100))
        await asyncio.wait([more], timeout=0.2)
        assert not more.done()
        await reader.ack(held[-1])
        assert 0 < len(await more) <= 10
        await reader.aclose()


async def test_a_record_nobody_can_read_lies_aside_with_its_reason(store: SqliteStore) -> None:
    url, prefix = shared_server().url, new_prefix()
    publisher = Publisher(url, name="test")
    await publisher.open()
    async with persisting(url, prefix, store) as persister, opened_journal(url, prefix, store) as journal:
        await publisher.publish(journal_name(prefix), b"junk")
        await journal.append(turns(2))
        await journal.barrier(timeout_s=30.0)
        assert persister.counts.num_set_aside == 1
        assert len(await store.turns.unfinished(limit=10)) == 2
        assert await waiting(url, f"{journal_name(prefix)}.aside") == 1
    await publisher.aclose()


async def test_a_journal_replayed_and_reordered_changes_nothing(store: SqliteStore) -> None:
    url, prefix = shared_server().url, new_prefix()
    ends = [make_ended(each.job) for each in turns(20)]
    async with persisting(url, prefix, store), opened_journal(url, prefix, store) as journal:
        await journal.append([*turns(20), *ends])
        await journal.append([*reversed(ends), *turns(20), *ends])
        await journal.barrier(timeout_s=30.0)
        assert [await store.turns.get(each.id) for each in ends] == ends
        assert await store.turns.unfinished(limit=10) == []


async def test_a_broker_killed_amid_appends_keeps_every_record_it_confirmed(store: SqliteStore) -> None:
    victim, prefix = await asyncio.to_thread(started_victim), new_prefix()
    async with persisting(victim.url, prefix, store), opened_journal(victim.url, prefix, store) as journal:
        await asyncio.to_thread(victim.sync)
        calls = [asyncio.ensure_future(journal.append([turn])) for turn in turns(1_000)]
        await eventually(lambda: any(call.done() for call in calls))
        await asyncio.to_thread(victim.kill)
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert all(outcome is None or isinstance(outcome, DependencyDown) for outcome in outcomes)
        assert any(outcome is not None for outcome in outcomes), "the broker was killed too late"
        await asyncio.to_thread(victim.start)
        await behind_a_barrier(journal)
        written = {turn.id for turn in await store.turns.unfinished(limit=2_000)}
        confirmed = {f"turn_{number}" for number, outcome in enumerate(outcomes) if outcome is None}
        assert confirmed
        assert written >= confirmed


async def test_a_journal_shares_its_process_s_publishing_connection(store: SqliteStore) -> None:
    url, prefix = shared_server().url, new_prefix()
    publisher = Publisher(url, name="test")
    await publisher.open()
    journal = RabbitJournal(url, prefix, markers=store.markers, publisher=publisher)
    await journal.open()
    await journal.append(turns(1))
    await journal.aclose()
    with pytest.raises(DependencyDown):
        await journal.append(turns(1))
    await publisher.publish(journal_name(prefix), record.encode(turns(1)[0]))
    await publisher.aclose()
