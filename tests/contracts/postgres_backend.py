"""The store suites' rows on a real PostgreSQL, straight and through pgbouncer. A database of its own for each test."""

import asyncio
import atexit
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from pathlib import Path

from axon.adapters.journal.sqlite import SqliteJournal
from axon.adapters.store.postgres import PostgresStore
from axon.ports.journal import Journal
from axon.ports.store import Store
from tests.services.postgres import PgBouncer, PostgresServer
from tests.services.require import require

TEMPLATE = "migrated"


class PostgresStores:
    def __init__(self, url: str, closing: AsyncExitStack) -> None:
        self.url = url
        self._closing = closing

    async def connect(self) -> Store:
        store = PostgresStore(self.url, timeout_s=30.0)  # nobody breaks it, and the cores may be busy
        await store.open()
        self._closing.push_async_callback(store.aclose)
        return store

    async def journal(self, store: Store) -> Journal:
        assert isinstance(store, PostgresStore)
        journal = SqliteJournal(store.turns)
        await journal.open()
        self._closing.push_async_callback(journal.aclose)
        return journal


@asynccontextmanager
async def postgres_stores(folder: Path) -> AsyncIterator[PostgresStores]:
    async with fresh_database() as url, AsyncExitStack() as closing:
        yield PostgresStores(url, closing)


@asynccontextmanager
async def pgbouncer_stores(folder: Path) -> AsyncIterator[PostgresStores]:
    require("pgbouncer")
    async with fresh_database() as url, AsyncExitStack() as closing:
        bouncer = await asyncio.to_thread(shared_bouncer)
        yield PostgresStores(bouncer.url(url), closing)


@asynccontextmanager
async def fresh_database() -> AsyncIterator[str]:
    """A migrated database on the server that all tests share; for those that do the server no harm."""
    require("postgres", "initdb")
    server = await asyncio.to_thread(shared_server)
    url = await asyncio.to_thread(server.create_database, TEMPLATE)
    yield url
    await asyncio.to_thread(server.drop_database, url)


@cache
def shared_server() -> PostgresServer:
    """Started by the first test that needs it, removed at the end of the run."""
    folder = Path(tempfile.mkdtemp(prefix="axon-postgres-"))
    server = PostgresServer(folder, {"fsync": "off"})  # nobody kills it, and making databases is mostly syncing
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.kill)
    server.start()
    server.execute(f"CREATE DATABASE {TEMPLATE}")
    asyncio.run(_migrate(server.database_url(TEMPLATE)))
    return server


@cache
def shared_bouncer() -> PgBouncer:
    folder = Path(tempfile.mkdtemp(prefix="axon-pgbouncer-"))
    bouncer = PgBouncer(folder, shared_server())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(bouncer.kill)
    bouncer.start()
    return bouncer


async def _migrate(url: str) -> None:
    store = PostgresStore(url)
    await store.open()
    await store.aclose()
