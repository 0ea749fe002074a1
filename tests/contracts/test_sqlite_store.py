"""The store twin's own: its file, its migrations, its failures in our words."""

import asyncio
import errno
import signal
import sqlite3
import stat
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, exc

from axon.adapters.store import schema
from axon.adapters.store.driver_errors import translated
from axon.adapters.store.migrate import MIGRATIONS
from axon.adapters.store.sqlite import SqliteStore, sqlite_path
from axon.domain.reply import ResponseReply
from axon.domain.tenants.key import HOLDER
from axon.domain.tenants.tenant import Plan, Tenant
from axon.domain.turn import opened
from axon.errors import AxonError, DependencyDown, Misconfigured
from tests.contracts import later, older
from tests.contracts.builders import make_ended, make_job, make_key


@asynccontextmanager
async def opened_store(path: Path, **options: float) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path, **options)  # type: ignore[arg-type]
    await store.open()
    try:
        yield store
    finally:
        await store.aclose()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "axon.db"


async def test_reading_a_session_takes_no_memory_for_its_prompts(path: Path) -> None:
    prompt_ids = tuple(range(1_000, 5_000))
    async with opened_store(path) as store:
        for number in range(400):
            job = make_job(f"resp_{number}", session="conv_1", ordinal=number, prompt_ids=prompt_ids)
            await store.turns.apply([make_ended(job)])
        tracemalloc.start()
        try:
            entries = await store.turns.entries("conv_1", limit=1_000)
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert len(entries) == 400
    assert peak_bytes < 16 << 20  # the prompts alone, as ids, are more than three times as much


class TestFile:
    async def test_the_file_is_made_and_only_its_owner_may_read_it(self, path: Path) -> None:
        async with opened_store(path) as store:
            await store.keys.add(make_key())
            for file in path.parent.iterdir():
                assert stat.S_IMODE(file.stat().st_mode) == 0o600

    async def test_records_are_there_after_a_restart(self, path: Path) -> None:
        async with opened_store(path) as store:
            await store.turns.apply([opened(make_job())])
        async with opened_store(path) as store:
            assert await store.turns.unfinished(limit=1) == [opened(make_job())]

    async def test_a_command_line_can_write_beside_the_server(self, path: Path) -> None:
        async with opened_store(path) as server, opened_store(path) as cli:

            async def serve() -> None:
                for number in range(30):
                    await server.turns.apply([opened(make_job(f"turn_{number}"))])

            async def add_keys() -> None:
                for number in range(30):
                    await cli.keys.add(make_key(f"k{number:07d}"))

            await asyncio.gather(serve(), add_keys())
            assert len(await server.keys.all()) == 30
            assert len(await cli.turns.unfinished(limit=100)) == 30

    async def test_what_was_applied_survives_a_kill(self, path: Path) -> None:
        script = (
            "import asyncio, os, signal, sys\n"
            "from axon.adapters.store.sqlite import SqliteStore\n"
            "from axon.domain.turn import opened\n"
            "from tests.contracts.builders import make_job\n"
            "async def main():\n"
            "    store = SqliteStore(sys.argv[1])\n"
            "    await store.open()\n"
            "    await store.turns.apply([opened(make_job())])\n"
            "    os.kill(os.getpid(), signal.SIGKILL)\n"
            "asyncio.run(main())\n"
        )
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", script, str(path)],
            env={"PYTHONPATH": ":".join(sys.path)},
            timeout=60,
        )
        assert done.returncode == -signal.SIGKILL
        async with opened_store(path) as store:
            assert await store.turns.get("turn_1") == opened(make_job())

    async def test_commits_are_synced_to_a_write_ahead_log(self, path: Path) -> None:
        async with opened_store(path) as store, store._opened.database.connect() as connection:
            pragmas = ("journal_mode", "synchronous", "foreign_keys", "secure_delete")
            values = [await connection.exec_driver_sql(f"PRAGMA {pragma}") for pragma in pragmas]
            assert [value.scalar_one() for value in values] == ["wal", 2, 1, 1]

    async def test_purged_words_are_not_left_in_the_file(self, path: Path) -> None:
        async with opened_store(path) as store:
            job = make_job(reply=ResponseReply(instructions="a-very-secret-word"))
            await store.turns.apply([make_ended(job)])
            await store.turns.purge(ended_before=1_000.0)
        assert b"a-very-secret-word" not in await asyncio.to_thread(path.read_bytes)

    @pytest.mark.parametrize("source", ["", "sqlite:///", ":memory:", "sqlite:///:memory:", "postgresql://host/db"])
    def test_a_source_that_names_no_file_is_refused(self, source: str) -> None:
        with pytest.raises(Misconfigured):
            SqliteStore(source)

    def test_a_url_and_a_path_name_the_same_file(self) -> None:
        assert sqlite_path("sqlite:////var/axon.db") == Path("/var/axon.db") == sqlite_path(Path("/var/axon.db"))
        assert sqlite_path("sqlite:///axon.db") == Path("axon.db")


class TestMigrations:
    async def test_the_migrations_make_the_tables_the_code_expects(self, path: Path) -> None:
        async with opened_store(path):
            pass
        engine = create_engine(f"sqlite:///{path}")
        with engine.connect() as connection:
            assert compare_metadata(MigrationContext.configure(connection), schema.metadata) == []
        engine.dispose()

    def test_the_head_the_store_checks_is_the_newest_migration(self) -> None:
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        assert ScriptDirectory.from_config(config).get_heads() == [schema.HEAD]

    async def test_a_file_that_is_up_to_date_opens_without_the_migration_tool(self, path: Path) -> None:
        async with opened_store(path):
            pass
        script = (
            "import asyncio, sys\n"
            "from axon.adapters.store.sqlite import SqliteStore\n"
            "async def main():\n"
            "    store = SqliteStore(sys.argv[1])\n"
            "    await store.open()\n"
            "    await store.aclose()\n"
            "asyncio.run(main())\n"
            "sys.exit('alembic' in sys.modules)\n"
        )
        command = [sys.executable, "-c", script, str(path)]
        done = await asyncio.to_thread(subprocess.run, command, env={"PYTHONPATH": ":".join(sys.path)}, timeout=60)
        assert done.returncode == 0

    async def test_two_who_open_a_new_file_at_once_both_succeed(self, path: Path) -> None:
        stores = [SqliteStore(path) for _ in range(4)]
        await asyncio.gather(*(store.open() for store in stores))
        for store in stores:
            await store.ping()
            await store.aclose()

    async def test_a_file_of_a_later_release_is_refused(self, path: Path) -> None:
        async with opened_store(path):
            pass
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.close()
        with pytest.raises(Misconfigured):
            await SqliteStore(path).open()

    async def test_a_tenant_is_made_for_each_that_had_a_key_and_the_release_before_goes_on(self, path: Path) -> None:
        path.parent.mkdir(parents=True)
        older.fill(f"sqlite:///{path}")
        async with opened_store(path) as store:
            await older.check(store)
            older.add_key(f"sqlite:///{path}", "k9", "late")
            late = await store.keys.access("k9")
            assert late is not None
            assert (late.tenant, late.key.scopes) == (Tenant(id="late"), HOLDER)

    async def test_usage_is_summed_tenant_by_tenant_in_an_index_alone(self, path: Path) -> None:
        async with opened_store(path) as store, store._opened.database.connect() as connection:
            for tenant in (None, "acme"):
                query = store.usage.query(0.0, 1.0, tenant, by_day=True)
                compiled = query.compile(connection.engine.sync_engine, compile_kwargs={"literal_binds": True})
                plan = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {compiled}")
                assert "turns USING COVERING INDEX turns_by_tenant (tenant=? AND ended_at>? AND ended_at<?)" in str(
                    plan.all()
                )

    async def test_what_is_stored_is_summed_in_indexes_alone(self, path: Path) -> None:
        async with opened_store(path) as store, store._opened.database.connect() as connection:
            plans = []
            for query in store.storage.queries("acme"):
                compiled = query.compile(connection.engine.sync_engine, compile_kwargs={"literal_binds": True})
                plan = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {compiled}")
                plans.append(" ".join(row.detail for row in plan))
        assert "turns USING COVERING INDEX turns_by_storage (tenant=? AND retain=?" in plans[0]
        assert "conversations USING COVERING INDEX conversations_by_tenant (tenant=?)" in plans[1]

    async def test_what_the_release_before_stored_is_counted(self, path: Path) -> None:
        path.parent.mkdir(parents=True)
        older.keep(f"sqlite:///{path}")
        async with opened_store(path) as store:
            assert await store.storage.stored("acme") == older.KEPT

    async def test_the_queries_of_the_sweeper_walk_an_index(self, path: Path) -> None:
        async with opened_store(path) as store, store._opened.database.connect() as connection:
            plans = []
            for where in (
                "rank = 0 ORDER BY opened_at, id LIMIT 5",
                "body IS NOT NULL AND retain = 0 AND ended_at < 5 ORDER BY ended_at LIMIT 5",
            ):
                plan = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN SELECT id FROM turns WHERE {where}")
                plans.append(" ".join(row.detail for row in plan))
        assert "turns_by_rank" in plans[0]
        assert "turns_to_purge" in plans[1]
        assert "TEMP B-TREE" not in " ".join(plans)


async def test_a_record_of_a_later_release_keeps_what_this_one_does_not_know(path: Path) -> None:
    async with opened_store(path) as store:
        await later.check_registry(store, f"sqlite:///{path}")


class TestFailures:
    async def test_a_full_disk_is_storage_full_and_what_was_there_can_be_read(self, path: Path) -> None:
        async with opened_store(path, max_bytes=100_000) as store:
            await store.turns.apply([opened(make_job())])
            big = opened(make_job("big", prompt_ids=tuple(range(100_000))))
            with pytest.raises(DependencyDown) as failure:
                await store.turns.apply([big])
            assert failure.value.code == "storage_full"
            assert await store.turns.get("turn_1") == opened(make_job())
            await store.turns.apply([make_ended(make_job())])

    async def test_a_locked_file_is_dependency_down_in_every_write(self, path: Path) -> None:
        async with opened_store(path, busy_timeout_s=0.05) as store:
            await store.keys.add(make_key())
            other = sqlite3.connect(path, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            for write in (
                store.keys.add(make_key("k2")),
                store.keys.revoke("k0000001", at=1.0),
                store.keys.touch({"k0000001": 1.0}),
                store.keys.rotate(make_key("k2", previous="k0000001"), until=1.0),
                store.tenants.add(Tenant(id="acme")),
                store.tenants.change(Tenant(id="acme"), Tenant(id="acme", name="Acme")),
                store.tenants.remove("acme", at=1.0),
                store.plans.add(Plan(name="pro")),
                store.plans.remove("pro"),
                store.turns.apply([opened(make_job())]),
                store.turns.purge(ended_before=1.0),
            ):
                with pytest.raises(DependencyDown):
                    await write
            assert await store.keys.find("k0000001") == make_key()
            other.execute("ROLLBACK")
            other.close()
            await store.turns.apply([opened(make_job())])

    async def test_a_folder_that_cannot_be_made_is_dependency_down(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(DependencyDown):
            await SqliteStore(tmp_path / "file" / "axon.db").open()

    async def test_a_table_that_is_gone_is_dependency_down_in_every_call(self, path: Path) -> None:
        async with opened_store(path) as store:
            other = sqlite3.connect(path)
            other.executescript("DROP TABLE keys; DROP TABLE turns; DROP TABLE tenants; DROP TABLE plans;")
            other.close()
            for call in (
                store.ping(),
                store.keys.add(make_key()),
                store.keys.find("k"),
                store.keys.access("k"),
                store.keys.touch({"k": 1.0}),
                store.keys.all(),
                store.keys.revoke("k", at=1.0),
                store.keys.rotate(make_key(previous="k"), until=1.0),
                store.tenants.add(Tenant(id="acme")),
                store.tenants.get("acme"),
                store.tenants.all(),
                store.tenants.change(Tenant(id="acme"), Tenant(id="acme", name="Acme")),
                store.tenants.remove("acme", at=1.0),
                store.plans.add(Plan(name="pro")),
                store.plans.get("pro"),
                store.plans.all(),
                store.plans.remove("pro"),
                store.usage.sums(since=0.0, until=1.0),
                store.turns.apply([opened(make_job())]),
                store.turns.get("t"),
                store.turns.unfinished(limit=1),
                store.turns.purge(ended_before=1.0),
            ):
                with pytest.raises(DependencyDown):
                    await call

    async def test_a_closed_store_refuses(self, path: Path) -> None:
        store = SqliteStore(path)
        with pytest.raises(DependencyDown):
            await store.ping()
        await store.open()
        await store.aclose()
        await store.aclose()
        with pytest.raises(DependencyDown):
            _ = store.turns

    async def test_a_record_that_cannot_be_read_is_told_and_left_out_of_lists(self, path: Path) -> None:
        async with opened_store(path) as store:
            await store.turns.apply([opened(make_job("bad")), opened(make_job("good"))])
            other = sqlite3.connect(path)
            other.execute("UPDATE turns SET body = x'80' WHERE id = 'bad'")
            other.commit()
            other.close()
            with pytest.raises(DependencyDown) as failure:
                await store.turns.get("bad")
            assert failure.value.code == "record_unreadable"
            assert [turn.id for turn in await store.turns.unfinished(limit=5)] == ["good"]

    async def test_a_reader_who_goes_away_leaves_the_store_working(self, path: Path) -> None:
        async with opened_store(path, num_connections=1) as store:
            await store.turns.apply([opened(make_job())])
            for _ in range(20):
                call = asyncio.ensure_future(store.turns.get("turn_1"))
                await asyncio.sleep(0)
                call.cancel()
            assert await store.turns.get("turn_1") == opened(make_job())

    async def test_more_callers_than_connections_all_get_their_turn(self, path: Path) -> None:
        async with opened_store(path, num_connections=2) as store:
            await store.turns.apply([opened(make_job())])
            found = await asyncio.gather(*(store.turns.get("turn_1") for _ in range(50)))
            assert found == [opened(make_job())] * 50

    @pytest.mark.parametrize(
        "error",
        [
            sqlite3.OperationalError("x"),
            sqlite3.DatabaseError("x"),
            sqlite3.ProgrammingError("x"),
            exc.OperationalError("s", {}, sqlite3.OperationalError("x")),
            exc.TimeoutError("pool"),
            exc.StatementError("x", "s", {}, None),
            OSError(errno.EIO, "x"),
            OverflowError("too large for the column"),
            UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"),
        ],
        ids=lambda error: type(error).__name__,
    )
    def test_no_drivers_error_passes(self, error: Exception) -> None:
        with pytest.raises(AxonError), translated():
            raise error

    def test_no_room_on_the_disk_is_storage_full(self) -> None:
        with pytest.raises(DependencyDown) as failure, translated():
            raise OSError(errno.ENOSPC, "No space left on device")
        assert failure.value.code == "storage_full"


async def test_a_file_that_is_no_database_is_refused_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "axon.db"
    path.write_bytes(b"not a database, not at all" * 100)
    with pytest.raises(Misconfigured, match=r"axon\.db"):
        await SqliteStore(path).open()
