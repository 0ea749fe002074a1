"""The twins of a hub, as a front has them: over a Unix socket, with the hub in the same event loop."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from axon.adapters.journal.sqlite import SqliteJournal
from axon.adapters.live.memory.live import open_memory_live
from axon.adapters.queue.memory import MemoryBroker
from axon.adapters.remote.ports import RemotePorts
from axon.adapters.remote.server import PortServer
from axon.adapters.store.sqlite import SqliteStore
from axon.ports.journal import Journal
from axon.ports.live import Live
from axon.ports.queue import Lanes, Queue
from axon.ports.store import Store
from axon.runtime.clock import FakeClock, SystemClock

_END_S = 10.0


async def until(true: Callable[[], bool]) -> None:
    """Waits until it is true; what has to happen for that happens in this event loop."""
    async with asyncio.timeout(_END_S):
        while not true():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)


class Remote:
    """A backend of every suite: each ``connect`` is one more front."""

    def __init__(self, folder: Path, closing: AsyncExitStack, *, retention_s: float) -> None:
        self.clock = FakeClock()
        self.path = folder / "fronts.sock"
        self._folder, self._closing = folder, closing
        self.twins = open_memory_live(self.clock, retention_s=retention_s, carries=True)
        self._broker = MemoryBroker(clock=self.clock)
        self._fronts: dict[int, RemotePorts] = {}

    async def open(self) -> "Remote":
        store = SqliteStore(self._folder / "axon.db")
        await store.open()
        self._closing.push_async_callback(store.aclose)
        self.journal_twin = journal = SqliteJournal(store.turns)
        await journal.open()
        self._closing.push_async_callback(journal.aclose)
        queue = self._broker.connect()
        await queue.open()
        self.server = PortServer(self.path, live=self.twins, queue=queue, journal=journal, store=store)
        await self.server.open()
        self._closing.push_async_callback(self.server.aclose)
        self._first = await self.front()
        return self

    @property
    def live(self) -> Live:
        return self._first.live

    async def front(self) -> RemotePorts:
        """A connection of its own."""
        ports, before = RemotePorts(self.path, SystemClock()), self.server.num_fronts
        await ports.open()
        self._closing.push_async_callback(ports.aclose)
        await until(lambda: self.server.num_fronts > before)
        return ports

    async def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)

    async def grow_old(self, seconds: float) -> None:
        await self.pass_time(seconds)

    async def lose_everything(self) -> None:
        self.twins.lose_everything()

    async def lose_tail(self, job_id: str, keep: int) -> None:
        self.twins.log.lose_tail(job_id, keep)


class RemoteQueues(Remote):
    async def connect(self) -> Lanes:
        ports = await self.front()
        self._fronts[id(ports.queue)] = ports
        return ports.queue

    async def lose(self, queue: Queue) -> None:
        before = self.server.num_fronts
        await self._fronts[id(queue)].aclose()
        await until(lambda: self.server.num_fronts < before)


class RemoteStores(Remote):
    async def connect(self) -> Store:
        ports = await self.front()
        self._fronts[id(ports.store)] = ports
        return ports.store

    async def journal(self, store: Store) -> Journal:
        return self._fronts[id(store)].journal


@asynccontextmanager
async def remote_lives(folder: Path, *, retention_s: float) -> AsyncIterator[Remote]:
    async with AsyncExitStack() as closing:
        yield await Remote(folder, closing, retention_s=retention_s).open()


@asynccontextmanager
async def remote_queues(folder: Path) -> AsyncIterator[Remote]:
    async with AsyncExitStack() as closing:
        yield await RemoteQueues(folder, closing, retention_s=1.0).open()


@asynccontextmanager
async def remote_stores(folder: Path) -> AsyncIterator[Remote]:
    async with AsyncExitStack() as closing:
        yield await RemoteStores(folder, closing, retention_s=1.0).open()
