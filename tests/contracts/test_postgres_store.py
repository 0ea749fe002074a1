"""The PostgreSQL store's own: servers that die, stall, refuse and are replaced, and its failures in our words."""

import asyncio
import time
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy.exc
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from psycopg import errors

from axon.adapters.store import schema
from axon.adapters.store.driver_errors import translated
from axon.adapters.store.postgres import PostgresStore
from axon.domain.registry.model import Model
from axon.domain.tenant import Limits, Plan, Tenant
from axon.domain.turn import opened
from axon.errors import AxonError, DependencyDown, Misconfigured
from tests.contracts import later, older
from tests.contracts.builders import make_ended, make_job, make_key
from tests.contracts.postgres_backend import fresh_database, shared_bouncer, shared_server
from tests.services.postgres import PostgresServer
from tests.services.process import wait_for
from tests.services.require import require

pytestmark = pytest.mark.services

DEADLINE_S = 1.0
LATE_S = 10.0
"""What a call may take over its deadline: telling the server, and a busy machine."""
AT_ONCE = 5
"""Calls to a store that does not answer: fewer than its connections, so that none waits for another."""
BACK_S = 60.0
"""What a server that goes on may take, on a busy machine, until it answers within the deadline again."""


@asynccontextmanager
async def opened_store(url: str, **options: Any) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(url, **options)
    await store.open()
    try:
        yield store
    finally:
        await store.aclose()


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """A database on the shared server, for tests that do the server no harm."""
    async with fresh_database() as url:
        yield url


@pytest.fixture
async def store(url: str) -> AsyncIterator[PostgresStore]:
    async with opened_store(url, timeout_s=30.0) as store:
        yield store


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PostgresServer]:
    """A server of the test's own, to be harmed."""
    require("postgres", "initdb")
    server = PostgresServer(tmp_path / "postgres")
    server.start()
    yield server
    server.kill()


def calls(store: PostgresStore) -> list[Callable[[], Coroutine[Any, Any, object]]]:
    """Every call of the port."""
    return [
        store.ping,
        lambda: store.keys.add(make_key("k2")),
        lambda: store.keys.find("k0000001"),
        lambda: store.keys.access("k0000001"),
        lambda: store.keys.touch({"k0000001": 1.0}),
        store.keys.all,
        lambda: store.keys.revoke("k0000001", at=1.0),
        lambda: store.keys.rotate(make_key("k3", previous="k0000001"), until=1.0),
        lambda: store.tenants.add(Tenant(id="acme")),
        lambda: store.tenants.get("acme"),
        store.tenants.all,
        lambda: store.tenants.change(Tenant(id="acme"), Tenant(id="acme", name="Acme")),
        lambda: store.tenants.remove("acme", at=1.0),
        lambda: store.plans.add(Plan(name="pro")),
        lambda: store.plans.change(Plan(name="pro"), Plan(name="pro", limits=Limits(weight=2.0))),
        lambda: store.plans.get("pro"),
        store.plans.all,
        lambda: store.plans.remove("pro"),
        store.registry.snapshot,
        store.registry.revision,
        lambda: store.registry.write(None, Model(name="small", created=1.0), actor="test", at=1.0),
        lambda: store.registry.changes(after=0, limit=1),
        lambda: store.usage.sums(since=0.0, until=1.0),
        lambda: store.turns.apply([opened(make_job())]),
        lambda: store.turns.get("turn_1"),
        lambda: store.turns.unfinished(limit=1),
        store.turns.count_unfinished,
        lambda: store.turns.purge(ended_before=1.0),
        lambda: store.markers.put(["m1"], at=1.0),
        lambda: store.markers.seen("m1"),
        store.terms.take,
    ]


async def all_fail_in_time(store: PostgresStore) -> set[str]:
    """The codes with which they fail, some at a time."""

    async def fails_in_time(call: Callable[[], Coroutine[Any, Any, object]]) -> str:
        start = time.monotonic()
        with pytest.raises(DependencyDown) as failure:
            await call()
        assert time.monotonic() - start < DEADLINE_S + LATE_S
        return failure.value.code

    every, codes = calls(store), set()
    for first in range(0, len(every), AT_ONCE):
        codes |= set(await asyncio.gather(*map(fails_in_time, every[first : first + AT_ONCE])))
    return codes


async def comes_back(store: PostgresStore) -> None:
    """Waits until the store answers within its deadline, and has what was written."""
    async with asyncio.timeout(BACK_S):
        while True:
            with suppress(DependencyDown):
                assert await store.turns.get("turn_1") == opened(make_job())
                return


class TestServersThatFail:
    async def test_after_a_kill_and_a_restart_the_first_call_succeeds(self, server: PostgresServer) -> None:
        async with opened_store(server.url, timeout_s=30.0) as store:
            await asyncio.gather(*(store.turns.apply([opened(make_job(f"turn_{n}"))]) for n in range(8)))
            server.kill()
            server.start()
            assert len(await store.turns.unfinished(limit=10)) == 8
            await store.turns.apply([make_ended(make_job("turn_0"))])

    async def test_a_stopped_server_is_down_in_every_call_and_comes_back(self, server: PostgresServer) -> None:
        async with opened_store(server.url, timeout_s=DEADLINE_S) as store:
            await store.turns.apply([opened(make_job())])
            server.stop()
            assert await all_fail_in_time(store) == {"storage_unavailable"}
            server.start()
            await comes_back(store)

    async def test_a_server_that_stalls_is_down_in_time_and_comes_back(self, server: PostgresServer) -> None:
        async with opened_store(server.url, timeout_s=DEADLINE_S) as store:
            await store.turns.apply([opened(make_job())])
            server.pause()
            try:
                assert await all_fail_in_time(store) == {"storage_unavailable"}
            finally:
                server.resume()
            await comes_back(store)

    async def test_a_caller_who_goes_away_from_a_stalled_server_is_let_go(self, server: PostgresServer) -> None:
        async with opened_store(server.url, timeout_s=30.0) as store:
            await store.ping()
            server.pause()
            try:
                start = time.monotonic()
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.2):
                        await store.ping()
                assert time.monotonic() - start < 0.2 + LATE_S
            finally:
                server.resume()
            await store.ping()

    async def test_nobody_at_the_address_is_down_at_open(self, server: PostgresServer) -> None:
        server.stop()
        with pytest.raises(DependencyDown):
            await PostgresStore(server.url).open()

    async def test_a_promoted_standby_has_every_write_that_was_acknowledged(
        self, server: PostgresServer, tmp_path: Path
    ) -> None:
        acknowledged: list[str] = []

        async def write(store: PostgresStore, writer: int) -> None:
            for number in range(100_000):
                turn = opened(make_job(f"turn_{writer}_{number}"))
                await store.turns.apply([turn])
                acknowledged.append(turn.id)

        async with opened_store(server.url) as store:
            standby = await asyncio.to_thread(server.standby, tmp_path / "standby")
            try:
                writers = [asyncio.create_task(write(store, writer)) for writer in range(4)]
                await asyncio.to_thread(wait_for, lambda: len(acknowledged) >= 200, "200 turns are written")
                await asyncio.to_thread(server.kill)
                outcomes = await asyncio.gather(*writers, return_exceptions=True)
                assert all(isinstance(outcome, DependencyDown) for outcome in outcomes)
                await asyncio.to_thread(standby.promote)
                async with opened_store(standby.url) as promoted:
                    stored = {turn.id for turn in await promoted.turns.unfinished(limit=100_000)}
                    await promoted.turns.apply([make_ended(make_job(acknowledged[0]))])
                assert set(acknowledged) <= stored
            finally:
                standby.kill()

    async def test_a_read_only_server_says_so_serves_reads_and_recovers(self, server: PostgresServer) -> None:
        async with opened_store(server.url, timeout_s=30.0) as store:
            await store.turns.apply([opened(make_job())])
            server.configure(default_transaction_read_only="on")
            for write in (store.turns.apply([make_ended(make_job())]), store.keys.add(make_key())):
                with pytest.raises(DependencyDown) as failure:
                    await write
                assert failure.value.code == "store_read_only"
            assert await store.turns.get("turn_1") == opened(make_job())
            server.configure(default_transaction_read_only=None)
            await takes_writes_again(store)


async def takes_writes_again(store: PostgresStore) -> None:
    """A server reads its settings in its own time."""
    async with asyncio.timeout(60.0):
        while True:
            with suppress(DependencyDown):
                await store.turns.apply([make_ended(make_job())])
                return
            await asyncio.sleep(0.05)


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
                waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
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
        async with store._database.begin() as connection:
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
        async with store._database.begin() as connection:
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


def tree(root: type[BaseException]) -> list[type[BaseException]]:
    """The error and its descendants; of the built-in ones only those, not what any other library derives from them."""
    children = [child for child in root.__subclasses__() if root.__module__ != "builtins" or _is_builtin(child)]
    return [root, *(leaf for child in children for leaf in tree(child))]


def _is_builtin(kind: type[BaseException]) -> bool:
    return kind.__module__ in ("builtins", "socket")


class TestFailures:
    async def test_none_of_the_drivers_errors_leaks(self, store: PostgresStore) -> None:
        kinds = {*tree(psycopg.Error), *errors._sqlcodes.values()}
        assert len(kinds) > 200
        for kind in kinds:
            for lend in (store._database.connect, store._database.begin):
                with pytest.raises(DependencyDown), translated():
                    async with lend():
                        raise kind("from the driver")
        await store.ping()

    async def test_none_of_the_errors_around_the_driver_leaks(self, store: PostgresStore) -> None:
        for kind in {*tree(OSError), *tree(sqlalchemy.exc.SQLAlchemyError)}:
            error = kind.__new__(kind)
            if isinstance(error, sqlalchemy.exc.DBAPIError):
                error = sqlalchemy.exc.DBAPIError.instance("", {}, psycopg.OperationalError("x"), psycopg.Error)
            with pytest.raises(DependencyDown), translated():
                async with store._database.begin():
                    raise error

    async def test_an_error_while_connecting_is_translated_in_every_call(
        self, url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with opened_store(url, timeout_s=30.0) as store:
            for error in (psycopg.OperationalError("x"), psycopg.InterfaceError("x"), OSError(5, "x"), TimeoutError()):

                async def fail(error: Exception = error, **_: object) -> None:
                    raise error

                monkeypatch.setattr("axon.adapters.store.postgres.PostgresConnection.connect", fail)
                assert store._engine is not None
                await store._engine.dispose()
                for call in calls(store):
                    with pytest.raises(DependencyDown):
                        await call()

    @pytest.mark.parametrize(
        ("kind", "code"),
        [
            (errors.DiskFull, "storage_full"),
            (errors.ReadOnlySqlTransaction, "store_read_only"),
            (errors.CharacterNotInRepertoire, "record_refused"),
            (errors.NumericValueOutOfRange, "record_refused"),
            (errors.UniqueViolation, "record_refused"),
            (errors.UndefinedTable, "storage_unavailable"),
            (errors.InsufficientPrivilege, "storage_unavailable"),
            (errors.DeadlockDetected, "storage_unavailable"),
            (errors.TooManyConnections, "storage_unavailable"),
            (errors.AdminShutdown, "storage_unavailable"),
        ],
    )
    async def test_each_failure_has_its_code(self, store: PostgresStore, kind: type[psycopg.Error], code: str) -> None:
        with pytest.raises(AxonError) as failure, translated():
            async with store._database.begin():
                raise kind("from the driver")
        assert failure.value.code == code


@asynccontextmanager
async def empty_database() -> AsyncIterator[str]:
    require("postgres", "initdb")
    server = await asyncio.to_thread(shared_server)
    url = server.create_database()
    yield url
    server.drop_database(url)


def _differences(connection: Any) -> list[object]:
    return list(compare_metadata(MigrationContext.configure(connection), schema.metadata))
