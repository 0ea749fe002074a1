"""The store suites' rows on a real PostgreSQL, straight and through pgbouncer. A database of its own for each test."""

import asyncio
import atexit
import shutil
import tempfile
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from axon.adapters.journal.sqlite import SqliteJournal
from axon.adapters.service_address import ServiceAddress
from axon.adapters.store.postgres import PostgresStore
from axon.ports.journal import Journal
from axon.ports.store import Store
from tests.services.certificates import shared_authority
from tests.services.keeper import shared
from tests.services.postgres import PgBouncer, PostgresServer
from tests.services.require import require

TEMPLATE = "migrated"


class PostgresStores:
    def __init__(self, url: str | ServiceAddress, closing: AsyncExitStack) -> None:
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
async def postgres_tls_stores(folder: Path) -> AsyncIterator[PostgresStores]:
    """Names the CA alone: with it, nothing but TLS to the right name is taken."""
    async with fresh_database(tls=True) as url, AsyncExitStack() as closing:
        yield PostgresStores(tls_address(url), closing)


def tls_address(url: str, ca_file: Path | None = None) -> ServiceAddress:
    """The address of a service on this machine by the name in its certificate."""
    return ServiceAddress(url=url.replace("127.0.0.1", "localhost"), ca_file=ca_file or shared_authority().file)


@asynccontextmanager
async def pgbouncer_stores(folder: Path) -> AsyncIterator[PostgresStores]:
    require("pgbouncer")
    async with fresh_database() as url, AsyncExitStack() as closing:
        bouncer = await asyncio.to_thread(shared_bouncer)
        yield PostgresStores(bouncer.url(url), closing)


@asynccontextmanager
async def fresh_database(*, tls: bool = False) -> AsyncIterator[str]:
    """A migrated database on the server that all tests share; for those that do the server no harm."""
    require("postgres", "initdb")
    server = await asyncio.to_thread(shared_server, tls=tls)
    url = await asyncio.to_thread(server.create_database, TEMPLATE)
    yield url
    await asyncio.to_thread(server.drop_database, url)


@shared
def shared_server(*, tls: bool = False) -> PostgresServer:
    """Started for the first test that needs it, removed at the end of the run. That with ``tls`` is another one:
    clients encrypt where they can, and tests that are not about TLS need not pay for it."""
    folder = Path(tempfile.mkdtemp(prefix="axon-postgres-"))
    server = PostgresServer(folder, {"fsync": "off"}, tls=tls)  # nobody kills it; making databases is mostly syncing
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.kill)
    server.start()
    server.execute(f"CREATE DATABASE {TEMPLATE}")
    with ThreadPoolExecutor(1) as thread:  # the first test that needs it may be in a loop of its own
        thread.submit(asyncio.run, _migrate(server.database_url(TEMPLATE))).result()
    return server


@shared
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
