"""What a measure runs on: the twins, or Redis, RabbitMQ and PostgreSQL of the benchmark's own. Measures nothing."""

import secrets
import tempfile
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.services.postgres import PostgresServer
from tests.services.rabbitmq import RabbitServer
from tests.services.redis import RedisServer

from axon.adapters.journal.rabbitmq import RabbitJournal
from axon.adapters.journal.rabbitmq_reader import RabbitJournalReader
from axon.adapters.journal.sqlite import SqliteJournal
from axon.adapters.live.memory.live import open_memory_live
from axon.adapters.live.redis.live import RedisLive
from axon.adapters.queue.memory import MemoryBroker
from axon.adapters.queue.rabbitmq import RabbitQueue
from axon.adapters.store.postgres import PostgresStore
from axon.adapters.store.sqlite import SqliteStore
from axon.domain.fairness.lane import lane_names
from axon.domain.job import Job
from axon.domain.sampling import Sampling
from axon.ports.journal import Journal, JournalReader
from axon.ports.live import Live
from axon.ports.queue import Queue
from axon.runtime.clock import SystemClock

_RETENTION_S = 60.0
DEPLOYMENT = "bench"
LANES = lane_names(DEPLOYMENT, 4)


@dataclass(frozen=True, slots=True)
class Urls:
    """Where the services are; passed to a process of its own as well."""

    live: str
    queue: str
    store: str


@dataclass(frozen=True, slots=True)
class Services:
    """The servers of this run."""

    redis: RedisServer
    rabbit: RabbitServer
    postgres: PostgresServer

    @property
    def urls(self) -> Urls:
        return Urls(self.redis.url, self.rabbit.url, self.postgres.url)

    def versions(self) -> dict[str, str]:
        with self.redis.admin() as admin:
            redis = str(admin.info("server")["redis_version"])
        postgres = str(self.postgres.execute("SHOW server_version")[0][0])
        return {"redis": redis, "rabbitmq": self.rabbit.ctl("version").strip(), "postgres": postgres}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The ports of one run, opened."""

    name: str
    live: Live
    queue: Queue
    journal: Journal
    store: SqliteStore | PostgresStore
    reader: JournalReader | None
    """The journal's other end, where a persister is needed to carry it into the store."""


@contextmanager
def started_services() -> Iterator[Services]:
    """The three, started together on private ports and folders, and removed at the end."""
    with tempfile.TemporaryDirectory(prefix="axon-bench-") as folder, ExitStack() as running:
        place = Path(folder)
        services = Services(
            RedisServer(place / "redis"), RabbitServer(place / "rabbit"), PostgresServer(place / "postgres")
        )
        for stop in (services.redis.kill, services.rabbit.remove, services.postgres.stop):
            running.callback(stop)
        with ThreadPoolExecutor() as starting:
            starts = (services.redis.start, services.rabbit.start, services.postgres.start)
            for started in [starting.submit(start) for start in starts]:
                started.result()
        yield services


@asynccontextmanager
async def open_stage(urls: Urls | None) -> AsyncIterator[Stage]:
    """The services under a prefix that nobody used before; without URLs the twins."""
    async with AsyncExitStack() as closing:
        yield await (_twins(closing) if urls is None else _on_services(urls, closing))


async def _twins(closing: AsyncExitStack) -> Stage:
    folder = closing.enter_context(tempfile.TemporaryDirectory(prefix="axon-bench-"))
    store = SqliteStore(Path(folder) / "axon.db")
    await store.open()
    closing.push_async_callback(store.aclose)
    journal = SqliteJournal(store.turns)
    await journal.open()
    closing.push_async_callback(journal.aclose)
    queue = MemoryBroker().connect()
    await queue.open()
    await queue.declare(LANES)
    live = open_memory_live(SystemClock(), retention_s=_RETENTION_S)
    return Stage(name="twins", live=live, queue=queue, journal=journal, store=store, reader=None)


async def _on_services(urls: Urls, closing: AsyncExitStack) -> Stage:
    prefix = f"bench-{secrets.token_hex(4)}"
    store = PostgresStore(urls.store)
    live = RedisLive(urls.live, retention_s=_RETENTION_S, prefix=prefix)
    queue = RabbitQueue(urls.queue, prefix)
    for service in (store, live, queue):
        await service.open()
        closing.push_async_callback(service.aclose)
    await queue.declare(LANES)
    journal = RabbitJournal(urls.queue, prefix, markers=store.markers, publisher=queue.publisher)
    await journal.open()
    reader = RabbitJournalReader(urls.queue, prefix)
    await reader.open()
    closing.push_async_callback(reader.aclose)
    return Stage(name="services", live=live, queue=queue, journal=journal, store=store, reader=reader)


def make_job(number: int, *, prompt_tokens: int = 128, max_tokens: int = 1 << 20) -> Job:
    """One of many jobs, of about the size a chat's are."""
    tenant = f"tenant-{number % 8}"
    return Job(
        id=f"turn_{secrets.token_hex(8)}",
        tenant=tenant,
        deployment=DEPLOYMENT,
        version="fp_bench",
        lane=LANES[number % len(LANES)],
        prompt_ids=tuple(32 + (number + place) % 90 for place in range(prompt_tokens)),
        sampling=Sampling(max_tokens=max_tokens, temperature=0.0),
        seed=number,
        deadline=4_000_000_000.0,
        created=1_700_000_000.0 + number,
        ticket=f"key-{number % 8}:1024",
    )
