"""The PostgreSQL store's own: races of writers, its connections, migrations, URLs and records that it refuses."""

import asyncio
import time
import traceback
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from axon.adapters.store import schema
from axon.adapters.store.postgres import PostgresStore
from axon.domain.tenants.tenant import Tenant
from axon.domain.turn import opened
from axon.errors import DependencyDown, Misconfigured
from tests.contracts import later, older
from tests.contracts.builders import make_ended, make_job
from tests.contracts.postgres_backend import fresh_database, shared_bouncer, shared_server
from tests.contracts.postgres_store import DEADLINE_S, LATE_S, calls, empty_database, opened_store
from tests.services.process import wait_for
from tests.services.require import require

pytestmark = pytest.mark.services


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """A database on the shared server, for tests that do the server no harm."""
    async with fresh_database() as url:
        yield url


@pytest.fixture
async def store(url: str) -> AsyncIterator[PostgresStore]:
    async with opened_store(url, timeout_s=30.0) as store:
        yield store


class TestRaces:
    async def test_of_two_writers_the_higher_rank_wins_whoever_comes_first(self, url: str) -> None:
        async with opened_store(url, timeout_s=30.0) as one, opened_store(url, timeout_s=30.0) as two:
            for round_number in range(60):
                jobs = [make_job(f"turn_{round_number}_{number}") for number in range(8)]
                begun, over = [opened(job) for job in jobs], [make_ended(job) for job in jobs]
                # Each writer has half of the ends, and meets the rows in its own order.
                first = [*begun[::2], *over[1::2]]
                second = [*over[::2], *begun[1::2]][::-1]
                await asyncio.gather(one.turns.apply(first), two.turns.apply(second))
                assert [await one.turns.get(job.id) for job in jobs] == over

    async def test_writers_and_purges_that_meet_on_the_same_rows_all_get_through(self, url: str) -> None:
        # The last by id ended first: a purge goes through them the other way round.
        rounds = [[make_ended(make_job(f"turn_{r:02d}_{n:02d}"), at=200.0 - n) for n in range(40)] for r in range(4)]

        async def write(store: PostgresStore, *, backwards: bool) -> None:
            for batch in rounds:
                for _ in range(3):
                    await store.turns.apply(batch[::-1] if backwards else batch)

        async def purge(store: PostgresStore, until: asyncio.Future[Any]) -> None:
            while not until.done():
                await store.turns.purge(ended_before=1_000.0)

        async with opened_store(url, timeout_s=30.0) as one, opened_store(url, timeout_s=30.0) as two:
            writing = asyncio.gather(write(one, backwards=False), write(two, backwards=True))
            await asyncio.gather(writing, purge(one, writing), purge(two, writing))
            await one.turns.purge(ended_before=1_000.0)
            kept = [await one.turns.get(turn.id) for turn in rounds[0]]
            assert all(turn is not None and turn.tokens == () for turn in kept)

    async def test_a_purge_leaves_a_row_that_somebody_holds_for_the_next_one(self, url: str) -> None:
        async with opened_store(url, timeout_s=30.0) as store:
            await store.turns.apply([make_ended(make_job(f"turn_{number}")) for number in range(5)])
            async with await psycopg.AsyncConnection.connect(url) as other:
                await other.execute("SELECT * FROM turns WHERE id = 'turn_3' FOR UPDATE")
                assert await store.turns.purge(ended_before=1_000.0) == 4
            assert await store.turns.purge(ended_before=1_000.0) == 1

    async def test_a_writer_behind_a_lock_gives_up_in_time_and_leaves_nothing_on_the_server(self, url: str) -> None:
        async with opened_store(url, timeout_s=DEADLINE_S) as store:
            await store.turns.apply([opened(make_job())])
            async with await psycopg.AsyncConnection.connect(url) as other:
                await other.execute("SELECT * FROM turns FOR UPDATE")
                start = time.monotonic()
                with pytest.raises(DependencyDown):
                    await store.turns.apply([make_ended(make_job())])
                assert time.monotonic() - start < DEADLINE_S + LATE_S
                waiting = (
                    "SELECT count(*) FROM pg_stat_activity "
                    "WHERE wait_event_type = 'Lock' AND datname = current_database()"
                )
                assert await (await other.execute(waiting)).fetchall() == [(0,)]
                await other.rollback()
            await store.turns.apply([make_ended(make_job())])

    async def test_more_callers_than_connections_wait_for_their_turn(self, url: str) -> None:
        async with opened_store(url, num_connections=2, timeout_s=30.0) as store:
            turns = [opened(make_job(f"turn_{number}")) for number in range(40)]
            await asyncio.gather(*(store.turns.apply([turn]) for turn in turns))
            assert len(await store.turns.unfinished(limit=100)) == 40


class TestSessions:
    async def test_nothing_is_prepared_and_the_isolation_is_read_committed(self, store: PostgresStore) -> None:
        for _ in range(10):
            await store.turns.get("turn_1")
        async with store._opened.database.begin() as connection:
            statements = await connection.exec_driver_sql("SELECT count(*) FROM pg_prepared_statements")
            level = await connection.exec_driver_sql("SHOW transaction_isolation")
            assert (statements.scalar_one(), level.scalar_one()) == (0, "read committed")

    async def test_many_processes_share_the_few_connections_of_a_pooler(self, url: str) -> None:
        require("pgbouncer")
        pooled = (await asyncio.to_thread(shared_bouncer)).url(url)
        stores = [PostgresStore(pooled, timeout_s=30.0) for _ in range(12)]
        await asyncio.gather(*(store.open() for store in stores))
        batches = [[opened(make_job(f"turn_{n}_{m}")) for m in range(20)] for n in range(len(stores))]
        await asyncio.gather(*(each.turns.apply(batch) for each, batch in zip(stores, batches, strict=True)))
        assert len(await stores[0].turns.unfinished(limit=1_000)) == 240
        for store in stores:
            await store.aclose()

    async def test_a_closed_store_leaves_no_connection(self, url: str) -> None:
        async with opened_store(url, timeout_s=30.0) as store:
            await asyncio.gather(*(store.ping() for _ in range(8)))
        count = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{url.rsplit('/', 1)[1]}'"
        wait_for(lambda: shared_server().execute(count) == [(0,)], "the server has no connection left")

    async def test_a_closed_store_refuses(self, url: str) -> None:
        store = PostgresStore(url)
        with pytest.raises(DependencyDown):
            await store.ping()
        await store.open()
        await store.aclose()
        await store.aclose()
        with pytest.raises(DependencyDown):
            _ = store.turns


class TestMigrations:
    async def test_several_who_open_a_new_database_at_once_migrate_it_once(self) -> None:
        async with empty_database() as url:
            stores = [PostgresStore(url, timeout_s=30.0) for _ in range(5)]
            await asyncio.gather(*(store.open() for store in stores))
            for store in stores:
                await store.ping()
                await store.aclose()
            versions = shared_server().execute("SELECT version_num FROM alembic_version", url.rsplit("/", 1)[1])
            assert versions == [(schema.HEAD,)]

    async def test_the_migrations_make_the_tables_the_code_expects(self, store: PostgresStore) -> None:
        async with store._opened.database.begin() as connection:
            assert await connection.run_sync(_differences) == []

    async def test_a_tenant_is_made_for_each_that_had_a_key_and_the_release_before_goes_on(self) -> None:
        async with empty_database() as url:
            await asyncio.to_thread(older.fill, url)
            async with opened_store(url, timeout_s=30.0) as store:
                await older.check(store)
                await asyncio.to_thread(older.add_key, url, "k9", "late")
                late = await store.keys.access("k9")
                assert late is not None
                assert late.tenant == Tenant(id="late")

    async def test_what_the_release_before_stored_is_counted_and_what_it_purges_is_not(self) -> None:
        async with empty_database() as url:
            await asyncio.to_thread(older.keep, url)
            async with opened_store(url, timeout_s=30.0) as store:
                assert await store.storage.stored("acme") == older.KEPT
                await asyncio.to_thread(older.purge, url)
                assert (await store.storage.stored("acme")).num_objects == older.KEPT.num_objects - 1

    @pytest.mark.parametrize("steps", [1, 2])
    async def test_tables_one_step_ahead_are_opened_and_later_ones_refused(self, url: str, steps: int) -> None:
        later = f"{int(schema.HEAD) + steps:04d}"
        shared_server().execute(f"UPDATE alembic_version SET version_num = '{later}'", url.rsplit("/", 1)[1])
        store = PostgresStore(url)
        if steps == 1:
            await store.open()
            await store.aclose()
        else:
            with pytest.raises(Misconfigured):
                await store.open()


class TestUrls:
    @pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
    async def test_every_common_spelling_is_understood(self, url: str, scheme: str) -> None:
        async with opened_store(url.replace("postgresql", scheme)) as store:
            await store.ping()

    @pytest.mark.parametrize(
        "url", ["", "sqlite:///axon.db", "postgresql://u:canary@h/d?wrong=1", "mysql://u:canary@h"]
    )
    def test_another_url_is_refused_without_being_quoted(self, url: str) -> None:
        with pytest.raises(Misconfigured) as failure:
            PostgresStore(url)
        assert "canary" not in "".join(traceback.format_exception(failure.value))


class TestRecords:
    async def test_a_text_that_the_server_cannot_hold_is_refused_and_stops_no_other(self, store: PostgresStore) -> None:
        bad = [
            opened(make_job("nul", session="a\x00b")),
            opened(make_job("lone", session="\ud800")),
            replace(opened(make_job("number")), opened_at=None),  # type: ignore[arg-type]
        ]
        good = [opened(make_job(f"turn_{number}")) for number in range(3)]
        failures = await store.turns.write([good[0], bad[0], good[1], bad[1], bad[2], good[2]])
        codes = ["" if failure is None else failure.code for failure in failures]
        assert codes == ["", "record_refused", "", "record_refused", "record_refused", ""]
        assert [await store.turns.get(turn.id) for turn in good] == good

    async def test_the_words_of_a_refused_record_are_in_no_traceback(self, store: PostgresStore) -> None:
        turn = replace(make_ended(make_job(session="canary")), ended_at=None, opened_at=None)  # type: ignore[arg-type]
        with pytest.raises(DependencyDown) as failure:
            await store.turns.apply([turn])
        assert failure.value.code == "record_refused"
        assert "canary" not in "".join(traceback.format_exception(failure.value))

    @pytest.mark.parametrize("name", ["a\x00b", "\ud800", "x" * 100_000], ids=["nul", "surrogate", "long"])
    async def test_an_id_that_no_row_can_have_is_unknown(self, store: PostgresStore, name: str) -> None:
        assert await store.turns.get(name) is None
        assert await store.keys.find(name) is None
        assert not await store.keys.revoke(name, at=1.0)

    async def test_a_record_of_a_later_release_keeps_what_this_one_does_not_know(
        self, store: PostgresStore, url: str
    ) -> None:
        await later.check_registry(store, url)

    async def test_a_table_that_is_gone_is_no_records_fault(self, store: PostgresStore, url: str) -> None:
        registry = "registry_records, registry_changes, registry_revision"
        tables = f"turns, keys, markers, terms, tenants, plans, {registry}"
        shared_server().execute(f"DROP TABLE {tables}", url.rsplit("/", 1)[1])
        for call in calls(store):
            with pytest.raises(DependencyDown) as failure:
                await call()
            assert failure.value.code == "storage_unavailable"


def _differences(connection: Any) -> list[object]:
    return list(compare_metadata(MigrationContext.configure(connection), schema.metadata))
