"""Chooses and opens the adapters by the schemes of three URLs; imports only those used. Opens no web server."""

import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from axon.control.persister import Persister
from axon.dispatch.affinity import Affinity, Residences
from axon.dispatch.config import DispatchConfig
from axon.domain.audit import AuditEntry, new_entry
from axon.domain.tenants.key import Key, digest, new_key_text
from axon.domain.tenants.tenant import Tenant, is_pool
from axon.errors import Conflict, Misconfigured
from axon.ports.journal import Journal, Pending
from axon.ports.live import Live
from axon.ports.queue import Lanes
from axon.ports.store import Store, TurnWriter
from axon.runtime.clock import Clock
from axon.runtime.datafolder import alone, read_or_make_secret, write_secret
from axon.runtime.restoring import require_whole
from axon.runtime.service_url import cannot_be_on, scheme_of
from axon.runtime.url_file import UrlFile
from axon.settings import Settings
from axon.tenants.facts import key_record, tenant_record

if TYPE_CHECKING:
    from axon.adapters.queue.memory import MemoryQueue
    from axon.adapters.remote.server import PortServer
    from axon.adapters.service_address import ServiceAddress
    from axon.adapters.store.postgres import PostgresStore
    from axon.adapters.store.sqlite import SqliteStore


class _Openable(Protocol):
    async def open(self) -> None: ...

    async def aclose(self) -> None: ...


Service = TypeVar("Service", bound=_Openable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The opened adapters behind the ports."""

    store: Store
    turn_writer: TurnWriter | None
    """Writes turns into the store, for the persister; None in a process that has none."""
    journal: Journal
    live: Live
    queue: Lanes
    queue_forgets: bool
    """Whether the queue is in this process's memory: at start, unfinished turns are enqueued again from the store."""
    background: tuple[Callable[[], Coroutine[Any, Any, None]], ...] = ()
    """Tasks that must run in a process that takes jobs."""
    pending: Callable[[], Awaitable[Pending]] | None = None
    """Counts what is in the journal and not in the store; None where the persister's reader counts it."""
    serve_to: "Callable[[Path], PortServer] | None" = None
    """Serves twins of this process to its fronts, at the path of a socket; None where fronts open the services
    themselves."""


def require_shared(settings: Settings, role: str) -> None:
    """Raises ``Misconfigured`` if a service is in one process's memory or file, since roles are separate processes."""
    if settings.queue.startswith("memory:") or settings.live.startswith("memory:"):
        raise Misconfigured(
            f"`axon {role}` shares its queue and live service with other processes, and memory:// is inside one. "
            "Give --queue amqp://… and --live redis://…, or run everything in one process with `axon serve`."
        )
    if settings.store.startswith("sqlite:"):
        raise Misconfigured(
            f"`axon {role}` shares its store with other processes, and SQLite is one process's file. "
            "Give --store postgresql://…, or run everything in one process with `axon serve`."
        )


def require_pool(settings: Settings) -> None:
    """Raises ``Misconfigured`` for an invalid ``worker.pool``."""
    pool = settings.worker.pool
    if not is_pool(pool):
        raise Misconfigured(f"worker.pool is {pool!r}: a pool's name has small letters, digits, - and _, 40 at most.")
    if pool and settings.queue.startswith("memory:"):
        raise Misconfigured(
            f"worker.pool is {pool!r}, but with memory:// there is one worker, which serves every tenant, whatever its "
            "pool. Leave worker.pool empty, or run a fleet: --queue amqp://… and --live redis://…"
        )


async def open_services(
    settings: Settings, clock: Clock, stack: AsyncExitStack, *, for_fronts: bool = False
) -> Services:
    """Opens store, live, queue and journal by the schemes of their URLs; the stack closes them. With ``for_fronts``,
    twins of this process are to be served to others."""
    if settings.queue.startswith("memory:") != settings.live.startswith("memory:"):
        raise Misconfigured(
            "The queue and live are either both in this process (memory://) or both services: what one of them keeps "
            "must not be lost with the other."
        )
    store = await open_store(settings, stack)
    live = await open_live(settings, clock, stack, carries=for_fronts)
    scheme = scheme_of(settings.queue)
    if scheme == "memory":
        from axon.adapters.journal.sqlite import SqliteJournal
        from axon.adapters.queue.memory import MemoryBroker

        journal = await _opened(SqliteJournal(store.turns, clock=clock), stack)
        queue = await _opened(MemoryBroker().connect(), stack)
        return Services(
            store=store,
            turn_writer=store.turns,
            journal=journal,
            live=live,
            queue=queue,
            queue_forgets=True,
            pending=journal.pending,
            serve_to=_serving(live, queue, journal, store) if for_fronts else None,
        )
    if scheme in ("amqp", "amqps"):
        from axon.adapters.journal.rabbitmq import RabbitJournal
        from axon.adapters.queue.rabbitmq import RabbitQueue

        prefix, timeout_s = settings.namespace, settings.service_timeout_s
        address = _address(settings, "queue", settings.queue, settings.queue_file)
        rabbit = await _opened(RabbitQueue(address, prefix, timeout_s=timeout_s), stack)
        wal = await _opened(
            RabbitJournal(address, prefix, markers=store.markers, publisher=rabbit.publisher, timeout_s=timeout_s),
            stack,
        )
        return Services(
            store=store,
            turn_writer=store.turns,
            journal=wal,
            live=live,
            queue=rabbit,
            queue_forgets=False,
            background=(rabbit.keep_young,),
        )
    raise Misconfigured(cannot_be_on("The queue", settings.queue, "memory:// or amqp://"))


def _serving(live: Live, queue: "MemoryQueue", journal: Journal, store: Store) -> "Callable[[Path], PortServer]":
    from axon.adapters.live.memory.live import MemoryLive
    from axon.adapters.remote.server import PortServer

    assert isinstance(live, MemoryLive)
    return lambda path: PortServer(path, live=live, queue=queue, journal=journal, store=store)


async def open_remote(path: Path, clock: Clock, stack: AsyncExitStack) -> Services:
    """The services of the process that serves its twins at this socket; the stack closes the connection."""
    from axon.adapters.remote.ports import RemotePorts

    ports = await _opened(RemotePorts(path, clock), stack)
    return Services(
        store=ports.store,
        turn_writer=None,
        journal=ports.journal,
        live=ports.live,
        queue=ports.queue,
        queue_forgets=True,
    )


def make_affinity(
    config: DispatchConfig, services: Services, clock: Clock, *, zone: str = ""
) -> tuple[Residences, Affinity] | tuple[None, None]:
    """The parts of cache affinity; None where it is off, or where there can be only one worker."""
    if not config.affinity or services.queue_forgets:
        return None, None
    live = services.live
    residences = Residences(live.cache, ttl_s=config.affinity_s)
    return residences, Affinity(
        residences=residences,
        presences=live.presences,
        own_lanes=services.queue,
        config=config,
        clock=clock,
        zone=zone,
    )


async def open_persister(
    settings: Settings, services: Services, clock: Clock, stack: AsyncExitStack, on_aside: Callable[[], None]
) -> Persister | None:
    """The persister, which copies the journal into the store; None where the journal is the store itself."""
    if services.queue_forgets or services.turn_writer is None:
        return None
    from axon.adapters.journal.rabbitmq_reader import RabbitJournalReader

    address, timeout_s = _address(settings, "queue", settings.queue, settings.queue_file), settings.service_timeout_s
    reader = await _opened(RabbitJournalReader(address, settings.namespace, timeout_s=timeout_s, clock=clock), stack)
    return Persister(reader, services.turn_writer, services.store.markers, clock=clock, on_aside=on_aside)


async def open_store(settings: Settings, stack: AsyncExitStack) -> "SqliteStore | PostgresStore":
    """Opens the store; the stack closes it. Raises ``Misconfigured`` after a restore that was cut off."""
    require_whole(settings.data_dir)
    scheme = scheme_of(settings.store)
    if scheme == "sqlite":
        from axon.adapters.store.sqlite import SqliteStore

        return await _opened(SqliteStore(settings.store), stack)
    if scheme in ("postgresql", "postgres"):
        from axon.adapters.store.postgres import PostgresStore

        return await _opened(PostgresStore(store_address(settings), timeout_s=settings.service_timeout_s), stack)
    raise Misconfigured(cannot_be_on("The store", settings.store, "sqlite:/// or postgresql://"))


def check_store_file(settings: Settings) -> None:
    """Raises ``Misconfigured`` if the store is a SQLite file that does not exist."""
    if scheme_of(settings.store) != "sqlite":
        return
    from axon.adapters.store.sqlite import sqlite_path

    path = sqlite_path(settings.store)
    if not path.exists():
        raise Misconfigured(
            f"There is no store at {path}: name another with --data-dir or --store. A first `axon serve` makes one."
        )


async def open_live(settings: Settings, clock: Clock, stack: AsyncExitStack, *, carries: bool = False) -> Live:
    """Opens the live service; the stack closes it. With ``carries``, notifications of an embedded log have the chunk
    in them, for listeners in other processes."""
    scheme = scheme_of(settings.live)
    retention_s = settings.sessions.retention_s
    if scheme == "memory":
        from axon.adapters.live.memory.live import open_memory_live

        return open_memory_live(clock, retention_s=retention_s, carries=carries)
    if scheme in ("redis", "rediss", "redis+cluster", "rediss+cluster"):
        from axon.adapters.live.redis.live import RedisLive

        prefix, deadline_s = settings.namespace, settings.service_timeout_s
        address = _address(settings, "live", settings.live, settings.live_file)
        return await _opened(RedisLive(address, retention_s=retention_s, prefix=prefix, deadline_s=deadline_s), stack)
    raise Misconfigured(cannot_be_on("Live", settings.live, "memory:// or redis://"))


def store_address(settings: Settings) -> "ServiceAddress":
    """The address of the store."""
    return _address(settings, "store", settings.store, settings.store_file)


def _address(settings: Settings, name: str, url: str, path: Path | None) -> "ServiceAddress":
    """The address of a service on another machine, which may be in a file."""
    from axon.adapters.service_address import ServiceAddress

    file = UrlFile(setting=name, path=path) if path is not None else None
    return ServiceAddress(url=url, file=file, ca_file=settings.service_ca_file)


async def _opened(service: Service, stack: AsyncExitStack) -> Service:
    """Opens the service; the stack closes it. A failure names the service's address and the cause."""
    await service.open()
    stack.push_async_callback(service.aclose)
    return service


def load_pepper(settings: Settings) -> bytes:
    """The secret that keys are hashed with: the setting, else a file created on first use."""
    if settings.pepper:
        return settings.pepper.encode()
    return read_or_make_secret(settings.data_dir / "pepper").encode()


def require_pepper(settings: Settings) -> None:
    """Raises ``Misconfigured`` if there is no pepper: a gateway of a fleet must not create one of its own."""
    if not settings.pepper and not (settings.data_dir / "pepper").exists():
        raise Misconfigured(
            f"There is no secret to hash keys with, and one made here, in {settings.data_dir}, would be this gateway's "
            "alone. Set AXON_PEPPER to the same long random text for every gateway, or share a data folder that has "
            "the file `pepper`."
        )


async def development_key(store: Store, pepper: bytes, data_dir: Path, now: float) -> str | None:
    """Creates a key if the store has none; returns its text and writes it to a file that only its owner can read."""
    with alone(data_dir, "dev-key"):  # gateways that share the folder create one key
        if await store.keys.all():
            return None
        parsed, text = new_key_text()
        secret = digest(pepper, parsed.secret)
        with contextlib.suppress(Conflict):  # the tenant may exist without a key
            first = Tenant(id="default", created_at=now)
            await store.tenants.add(first, entry=_made("tenant", first.id, tenant_record(first), now))
        if await store.tenants.get("default") is None:
            return None  # the tenant was removed on purpose
        key = Key(id=parsed.id, tenant="default", digest=secret, name="development", created_at=now)
        await store.keys.add(key, entry=_made("key", key.id, key_record(key, now), now))
        (data_dir / "dev-key").unlink(missing_ok=True)
        write_secret(data_dir / "dev-key", text)
        return text


def _made(kind: str, name: str, record: Mapping[str, object], now: float) -> AuditEntry:
    """The audit trail's entry of what a first start makes."""
    return new_entry(at=now, actor="server", kind=kind, name=name, action="add", after=record)
