"""What each contract suite runs on: one row per implementation. A row for a real server carries the ``services`` mark.

Suites see ports, and through a backend's own methods only what a port cannot offer: passing time and losing memory.
Durations stay near 0.2 s, because a real server's time passes by waiting.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pytest
from _pytest.mark import ParameterSet

from axon.adapters.journal.sqlite import SqliteJournal
from axon.adapters.live.memory.live import MemoryLive, open_memory_live
from axon.adapters.queue.memory import MemoryBroker
from axon.adapters.store.sqlite import SqliteStore
from axon.ports.journal import Journal
from axon.ports.live import Live
from axon.ports.queue import Lanes, Queue
from axon.ports.store import Store
from axon.runtime.clock import FakeClock
from tests.contracts.postgres_backend import pgbouncer_stores, postgres_stores, postgres_tls_stores
from tests.contracts.rabbitmq_backend import rabbitmq_queues, rabbitmq_stores, rabbitmq_tls_queues
from tests.contracts.redis_backend import redis_lives
from tests.contracts.remote_backend import remote_lives, remote_queues, remote_stores

RETENTION_S = 600.0
"""How long the backends keep an ended stream."""


class QueueBackend(Protocol):
    async def connect(self) -> Lanes:
        """A new taker."""

    async def lose(self, queue: Queue) -> None:
        """The taker dies."""

    async def pass_time(self, seconds: float) -> None: ...


class LiveBackend(Protocol):
    @property
    def live(self) -> Live: ...

    async def pass_time(self, seconds: float) -> None: ...

    async def grow_old(self, seconds: float) -> None:
        """Everything that is kept for a time has so much less of it left."""

    async def lose_everything(self) -> None:
        """The service restarts with nothing in it."""

    async def lose_tail(self, job_id: str, keep: int) -> None:
        """A replica takes over that has the stream up to ``keep``, which ends a chunk."""


class StoreBackend(Protocol):
    async def connect(self) -> Store:
        """One more process's view of the same records."""

    async def journal(self, store: Store) -> Journal: ...


class MemoryQueues:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.broker = MemoryBroker(clock=self.clock)

    async def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)

    async def connect(self) -> Lanes:
        queue = self.broker.connect()
        await queue.open()
        return queue

    async def lose(self, queue: Queue) -> None:
        await queue.aclose()  # type: ignore[attr-defined]


class MemoryLives:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.live: MemoryLive = open_memory_live(self.clock, retention_s=RETENTION_S)

    async def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)

    async def grow_old(self, seconds: float) -> None:
        await self.pass_time(seconds)

    async def lose_everything(self) -> None:
        self.live.lose_everything()

    async def lose_tail(self, job_id: str, keep: int) -> None:
        self.live.log.lose_tail(job_id, keep)


class SqliteStores:
    def __init__(self, folder: Path, closing: AsyncExitStack) -> None:
        self.path = folder / "axon.db"
        self._closing = closing

    async def connect(self) -> Store:
        store = SqliteStore(self.path)
        await store.open()
        self._closing.push_async_callback(store.aclose)
        return store

    async def journal(self, store: Store) -> Journal:
        assert isinstance(store, SqliteStore)
        journal = SqliteJournal(store.turns)
        await journal.open()
        self._closing.push_async_callback(journal.aclose)
        return journal


@asynccontextmanager
async def memory_queues(folder: Path) -> AsyncIterator[QueueBackend]:
    yield MemoryQueues()


@asynccontextmanager
async def memory_lives(folder: Path) -> AsyncIterator[LiveBackend]:
    yield MemoryLives()


@asynccontextmanager
async def sqlite_stores(folder: Path) -> AsyncIterator[StoreBackend]:
    async with AsyncExitStack() as closing:
        yield SqliteStores(folder, closing)


Opener = Callable[[Path], AbstractAsyncContextManager[Any]]

QUEUES: Mapping[str, Opener] = {
    "memory": memory_queues,
    "remote": remote_queues,
    "rabbitmq": rabbitmq_queues,
    "rabbitmq-tls": rabbitmq_tls_queues,
}
LIVES: Mapping[str, Opener] = {
    "memory": memory_lives,
    "remote": partial(remote_lives, retention_s=RETENTION_S),
    "redis": partial(redis_lives, retention_s=RETENTION_S),
    "redis-cluster": partial(redis_lives, retention_s=RETENTION_S, cluster=True),
    "redis-tls": partial(redis_lives, retention_s=RETENTION_S, tls=True),
    "redis-cluster-tls": partial(redis_lives, retention_s=RETENTION_S, cluster=True, tls=True),
}
STORES: Mapping[str, Opener] = {
    "sqlite": sqlite_stores,
    "remote": remote_stores,
    "postgres": postgres_stores,
    "pgbouncer": pgbouncer_stores,
    "postgres-tls": postgres_tls_stores,
}
JOURNALED: Mapping[str, Opener] = {
    **STORES,
    "rabbitmq+sqlite": partial(rabbitmq_stores, under=sqlite_stores),
    "rabbitmq+postgres": partial(rabbitmq_stores, under=postgres_stores),
    "rabbitmq-tls+sqlite": partial(rabbitmq_stores, under=sqlite_stores, tls=True),
}
"""Stores with each journal before them; without it, they are those above."""
WITHOUT_SERVICES = frozenset({"memory", "remote", "sqlite"})


def rows(table: Mapping[str, Opener]) -> list[ParameterSet]:
    """A suite's parameters. Through pgbouncer a short run asks a tenth of what it asks PostgreSQL itself, and over TLS
    what ``tls_choice`` has chosen."""
    return [pytest.param(opener, id=name, marks=_marks(name)) for name, opener in table.items()]


def _marks(name: str) -> list[pytest.MarkDecorator]:
    if name in WITHOUT_SERVICES:
        return []
    return [pytest.mark.services, *([pytest.mark.long("pgbouncer")] if name == "pgbouncer" else [])]
