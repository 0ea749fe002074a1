"""The contract suites' rows on RabbitMQ: one node for all of them, kept apart by the prefix of their queues."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from axon.adapters.journal.rabbitmq import RabbitJournal
from axon.adapters.journal.rabbitmq_reader import RabbitJournalReader
from axon.adapters.queue.rabbitmq import RabbitQueue
from axon.adapters.service_address import ServiceAddress
from axon.control.persister import Persister
from axon.ports.journal import Journal
from axon.ports.queue import Lanes, Queue
from axon.ports.store import Store, TurnWriter
from axon.runtime.clock import SystemClock
from tests.services.certificates import shared_authority
from tests.services.rabbitmq import RabbitServer, new_prefix, shared_server

if TYPE_CHECKING:
    from tests.contracts.backends import Opener, StoreBackend


class RabbitQueues:
    """Takers of the lanes under one prefix."""

    def __init__(
        self, server: RabbitServer, prefix: str, closing: AsyncExitStack, url: str | ServiceAddress = ""
    ) -> None:
        self.server, self.prefix = server, prefix
        self._url = url or server.url
        self._closing = closing

    async def pass_time(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def connect(self) -> Lanes:
        queue = RabbitQueue(self._url, self.prefix, timeout_s=30.0)
        await queue.open()
        self._closing.push_async_callback(queue.aclose)
        return queue

    async def lose(self, queue: Queue) -> None:
        assert isinstance(queue, RabbitQueue)
        await queue.aclose()


@asynccontextmanager
async def rabbitmq_queues(folder: Path) -> AsyncIterator[RabbitQueues]:
    server = shared_server()
    async with AsyncExitStack() as closing:
        yield RabbitQueues(server, new_prefix(), closing)


@asynccontextmanager
async def rabbitmq_tls_queues(folder: Path) -> AsyncIterator[RabbitQueues]:
    server = shared_server()
    async with AsyncExitStack() as closing:
        yield RabbitQueues(server, new_prefix(), closing, _over_tls(server))


def _over_tls(server: RabbitServer) -> ServiceAddress:
    return ServiceAddress(url=server.tls_url, ca_file=shared_authority().file)


class RabbitStores:
    """Another backend's stores, which the journal reaches over RabbitMQ with a persister between them."""

    def __init__(self, under: "StoreBackend", closing: AsyncExitStack, *, tls: bool = False) -> None:
        self._under, self._closing, self._tls = under, closing, tls

    async def connect(self) -> Store:
        return await self._under.connect()

    async def journal(self, store: Store) -> Journal:
        server, prefix = shared_server(), new_prefix()
        url = _over_tls(server) if self._tls else server.url
        await self._closing.enter_async_context(persisting(url, prefix, store))
        journal = RabbitJournal(url, prefix, markers=store.markers, timeout_s=30.0)
        await journal.open()
        self._closing.push_async_callback(journal.aclose)
        return journal


@asynccontextmanager
async def rabbitmq_stores(folder: Path, *, under: "Opener", tls: bool = False) -> AsyncIterator[RabbitStores]:
    async with under(folder) as backend, AsyncExitStack() as closing:
        yield RabbitStores(backend, closing, tls=tls)


@asynccontextmanager
async def persisting(url: str | ServiceAddress, prefix: str, store: Store) -> AsyncIterator[Persister]:
    """A persister at work."""
    reader = RabbitJournalReader(url, prefix)
    await reader.open()
    persister = Persister(reader, cast("TurnWriter", store.turns), store.markers, clock=SystemClock(), retry_s=0.02)
    running = asyncio.create_task(persister.run())
    try:
        yield persister
    finally:
        running.cancel()
        await asyncio.wait([running])
        await reader.aclose()
