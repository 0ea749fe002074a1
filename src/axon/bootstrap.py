"""Puts the process together: the only file that names an adapter, and the one owner that closes what it opens."""

import asyncio
import hashlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from axon.adapters.journal.sqlite import SqliteJournal
from axon.adapters.live.memory import open_memory_live
from axon.adapters.queue.memory import MemoryBroker
from axon.adapters.store.sqlite import SqliteStore
from axon.admission.admission import Admission
from axon.control.persister import Persister
from axon.control.sweeper import Sweeper
from axon.dispatch.dispatch import Dispatch
from axon.dispatch.ending import Ending
from axon.dispatch.idempotency import Idempotency
from axon.dispatch.liveness import Liveness
from axon.domain.deployment import Deployment
from axon.domain.key import Key, digest, new_key_text
from axon.engine.messages import Ready as EngineReady
from axon.errors import Misconfigured
from axon.gateway.app import build_app
from axon.gateway.auth import Authenticator
from axon.gateway.follow import Follower
from axon.gateway.opening import Opening
from axon.gateway.server import listen, make_server
from axon.gateway.turns import Gateway
from axon.ports.journal import Journal
from axon.ports.live import Live
from axon.ports.queue import Queue
from axon.ports.store import Store
from axon.runtime import failpoints
from axon.runtime.clock import Clock, SystemClock
from axon.runtime.datafolder import locked, read_or_make_secret, write_secret
from axon.runtime.lifecycle import Lifecycle
from axon.sessions.prompt import Prompts
from axon.settings import Settings
from axon.telemetry.build import version
from axon.telemetry.metrics import Metrics
from axon.text.template import ChatTemplate, load_template
from axon.text.tokenizer import Tokenizer, load_tokenizer
from axon.worker.engine_process import EngineProcess
from axon.worker.worker import Worker

T = TypeVar("T")


class _Openable(Protocol):
    async def open(self) -> None: ...

    async def aclose(self) -> None: ...


Service = TypeVar("Service", bound=_Openable)
if TYPE_CHECKING:
    from axon.adapters.store.postgres import PostgresStore

OnProgress = Callable[[str, float | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """What a person wants to know of a server that is up."""

    url: str
    metrics_url: str
    key: str | None
    """The development key's text, on the start that made it."""
    key_file: Path
    model: str
    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model's text side, and where its weights lie."""

    folder: Path | None
    tokenizer: Tokenizer
    template: ChatTemplate | None


async def serve(settings: Settings, *, on_ready: Callable[[Ready], None], on_progress: OnProgress) -> int:
    """Runs gateway, worker and control in this process until it is told to stop; returns the exit code."""
    failpoints.arm(settings.failpoints)
    lifecycle = Lifecycle()
    with locked(settings.data_dir), _signals(lifecycle):
        async with _assembled(settings, lifecycle, on_progress) as server:
            return await server.run(on_ready)


@asynccontextmanager
async def open_store(settings: Settings) -> AsyncIterator[Store]:
    """The durable records alone, as the command line needs them."""
    async with AsyncExitStack() as stack:
        yield await _open_store(settings, stack)


def load_pepper(settings: Settings) -> bytes:
    """The secret that keys are hashed with: the setting, else a file made on first use."""
    if settings.pepper:
        return settings.pepper.encode()
    return read_or_make_secret(settings.data_dir / "pepper").encode()


@dataclass(slots=True, kw_only=True)
class _Embedded:
    """Gateway, worker and control in one process."""

    settings: Settings
    lifecycle: Lifecycle
    metrics: Metrics
    gateway: Gateway
    worker: Worker
    sweeper: Sweeper
    services: "_Services"
    pepper: bytes

    async def run(self, on_ready: Callable[[Ready], None]) -> int:
        config, settings = self.gateway.config, self.settings
        key = await _development_key(self.services.store, self.pepper, settings.data_dir, self.gateway.clock.now())
        app = build_app(
            self.gateway, Authenticator(self.services.store.keys, self.pepper, self.gateway.clock), version=version()
        )
        listener = _listening(config.host, config.port, lambda: listen(config))
        metrics_port, close_metrics = _listening(
            config.metrics_host,
            config.metrics_port,
            lambda: self.metrics.serve(config.metrics_host, config.metrics_port),
        )
        http = make_server(app, config)
        try:
            async with asyncio.TaskGroup() as tasks:
                parts = (self.worker.run, self.sweeper.run, *self.services.background)
                background = [tasks.create_task(part()) for part in parts]
                serving = tasks.create_task(http.serve(sockets=[listener]))
                if self.services.queue_forgets:
                    await self.sweeper.recover()
                self.lifecycle.ready = True
                on_ready(
                    Ready(
                        url=f"http://{config.host}:{listener.getsockname()[1]}",
                        metrics_url=f"http://{config.metrics_host}:{metrics_port}/metrics",
                        key=key,
                        key_file=settings.data_dir / "dev-key",
                        model=self.gateway.deployment.name,
                        pid=os.getpid(),
                    )
                )
                await self.lifecycle.stopping.wait()
                self.metrics.draining.set(1)
                await self._drain()
                http.should_exit = True
                await serving
                for task in background:
                    task.cancel()
        finally:
            listener.close()
            close_metrics()
        return 0

    async def _drain(self) -> None:
        """Lets what runs end; a second signal ends the waiting."""
        draining = asyncio.create_task(self.worker.drain(self.settings.lifecycle.drain_s))
        hurrying = asyncio.create_task(self.lifecycle.hurry.wait())
        await asyncio.wait([draining, hurrying], return_when=asyncio.FIRST_COMPLETED)
        draining.cancel()
        hurrying.cancel()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Services:
    """What stands behind the ports, opened."""

    store: Store
    journal: Journal
    live: Live
    queue: Queue
    queue_forgets: bool
    """The queue lives in this process: what was in it is enqueued again from the store at start."""
    background: tuple[Callable[[], Coroutine[Any, Any, None]], ...] = ()
    """What has to run beside them."""


async def _open_services(settings: Settings, clock: Clock, stack: AsyncExitStack) -> _Services:
    """Three URLs choose; what is imported is what is used."""
    store = await _open_store(settings, stack)
    live = await _open_live(settings, clock, stack)
    scheme = settings.queue.partition(":")[0]
    if scheme == "memory":
        journal = await _opened(SqliteJournal(store.turns), stack)
        queue = await _opened(MemoryBroker().connect(), stack)
        return _Services(store=store, journal=journal, live=live, queue=queue, queue_forgets=True)
    if scheme in ("amqp", "amqps"):
        from axon.adapters.journal.rabbitmq import RabbitJournal
        from axon.adapters.journal.rabbitmq_reader import RabbitJournalReader
        from axon.adapters.queue.rabbitmq import RabbitQueue

        prefix = settings.namespace
        rabbit = await _opened(RabbitQueue(settings.queue, prefix), stack)
        wal = await _opened(
            RabbitJournal(settings.queue, prefix, markers=store.markers, publisher=rabbit.publisher), stack
        )
        reader = await _opened(RabbitJournalReader(settings.queue, prefix), stack)
        persister = Persister(reader, store.turns, store.markers, clock=clock)
        return _Services(
            store=store,
            journal=wal,
            live=live,
            queue=rabbit,
            queue_forgets=False,
            background=(persister.run, rabbit.keep_young),
        )
    raise Misconfigured(f"The queue cannot be on {scheme!r}: use memory:// or amqp://.")


async def _open_store(settings: Settings, stack: AsyncExitStack) -> "SqliteStore | PostgresStore":
    scheme = settings.store.partition(":")[0]
    if scheme == "sqlite":
        return await _opened(SqliteStore(settings.store), stack)
    if scheme in ("postgresql", "postgres"):
        from axon.adapters.store.postgres import PostgresStore

        return await _opened(PostgresStore(settings.store), stack)
    raise Misconfigured(f"The store cannot be on {scheme!r}: use sqlite:/// or postgresql://.")


async def _open_live(settings: Settings, clock: Clock, stack: AsyncExitStack) -> Live:
    scheme = settings.live.partition(":")[0]
    retention_s = settings.sessions.retention_s
    if scheme == "memory":
        return open_memory_live(clock, retention_s=retention_s)
    if scheme in ("redis", "rediss", "redis+cluster", "rediss+cluster"):
        from axon.adapters.live.redis import RedisLive

        return await _opened(RedisLive(settings.live, retention_s=retention_s, prefix=settings.namespace), stack)
    raise Misconfigured(f"Live cannot be on {scheme!r}: use memory:// or redis://.")


async def _opened(service: Service, stack: AsyncExitStack) -> Service:
    """Opens it, and closes it with everything else."""
    await service.open()
    stack.push_async_callback(service.aclose)
    return service


@asynccontextmanager
async def _assembled(settings: Settings, lifecycle: Lifecycle, on_progress: OnProgress) -> AsyncIterator[_Embedded]:
    clock, metrics = SystemClock(), Metrics()
    async with AsyncExitStack() as stack:
        services = await _open_services(settings, clock, stack)
        store, journal, live, queue = services.store, services.journal, services.live, services.queue

        model = await asyncio.to_thread(_prepare_model, settings, on_progress)
        grace_s = settings.sessions.reader_grace_s
        admission = Admission(live.buckets, settings.admission, ticket_ttl_s=settings.sessions.turn_timeout_s + grace_s)
        ending = Ending(journal, admission.settle, clock)
        worker = Worker(
            deployment=settings.model_name,
            num_lanes=settings.dispatch.num_lanes,
            queue=queue,
            live=live,
            turns=store.turns,
            ending=ending,
            tokenizer=model.tokenizer,
            make_engine=lambda: EngineProcess(settings.engine, model.folder),
            config=settings.worker,
            reader_grace_s=grace_s,
            clock=clock,
            metrics=metrics,
        )
        stack.push_async_callback(worker.aclose)
        on_progress("Loading the model", None)
        engine = await worker.open()
        prompts = Prompts(model.tokenizer, model.template, max_model_len=engine.max_model_len)
        stack.callback(prompts.close)
        dispatch = Dispatch(
            log=live.log,
            journal=journal,
            queue=queue,
            wakeups=live.wakeups,
            config=settings.dispatch,
            reader_grace_s=grace_s,
        )
        gateway = Gateway(
            config=settings.gateway,
            sessions=settings.sessions,
            dispatching=settings.dispatch,
            deployment=_deployment(settings.model_name, model, engine, clock.now()),
            prompts=prompts,
            opening=Opening(admission, dispatch, Idempotency(live.log, store.turns), clock),
            follower=Follower(
                live, store.turns, journal, clock, reader_grace_s=grace_s, silence_s=settings.gateway.silence_s
            ),
            live=live,
            store=store,
            lifecycle=lifecycle,
            clock=clock,
            metrics=metrics,
        )
        sweeper = Sweeper(
            turns=store.turns,
            live=live,
            queue=queue,
            dispatch=dispatch,
            ending=ending,
            liveness=Liveness(live.leases, clock, lease_s=settings.worker.lease_s),
            readmit=admission.readmit,
            config=settings.control,
            retention_s=settings.sessions.retention_s,
            clock=clock,
        )
        yield _Embedded(
            settings=settings,
            lifecycle=lifecycle,
            metrics=metrics,
            gateway=gateway,
            worker=worker,
            sweeper=sweeper,
            services=services,
            pepper=load_pepper(settings),
        )


def _prepare_model(settings: Settings, on_progress: OnProgress) -> Model:
    """The model's folder, converted once if it comes as a GGUF file."""
    folder = None if settings.engine.kind == "echo" else _model_folder(settings, on_progress)
    return Model(folder=folder, tokenizer=load_tokenizer(folder), template=load_template(folder))


def _model_folder(settings: Settings, on_progress: OnProgress) -> Path:
    from axon.engine.convert import convert_gguf, default_gguf, is_converted

    source = default_gguf() if settings.model == "default" else Path(settings.model)
    if not source.exists():
        raise Misconfigured(f"There is no model at {source}: give a folder of safetensors or a .gguf file.")
    if source.is_dir():
        return source
    assert settings.models_dir is not None
    folder = settings.models_dir / settings.model_name.replace("/", "--")
    if not is_converted(source, folder):
        convert_gguf(source, folder, lambda share: on_progress("Converting the model (once)", share))
    return folder


def _deployment(name: str, model: Model, engine: EngineReady, now: float) -> Deployment:
    """Its version changes with weights, tokenizer, template and kernel."""
    mark = hashlib.sha256(engine.kernel.encode())
    if model.folder is not None:
        for file in ("axon.json", "config.json", "tokenizer.json", "chat_template.jinja", "tokenizer_config.json"):
            path = model.folder / file
            mark.update(path.read_bytes() if path.exists() else b"-")
    return Deployment(name=name, version=f"fp_{mark.hexdigest()[:12]}", max_model_len=engine.max_model_len, created=now)


async def _development_key(store: Store, pepper: bytes, data_dir: Path, now: float) -> str | None:
    """On a first start, a key to begin with; shown once and kept in a file that only its owner can read."""
    if await store.keys.all():
        return None
    parsed, text = new_key_text()
    key = Key(id=parsed.id, tenant="default", digest=digest(pepper, parsed.secret), name="development", created_at=now)
    await store.keys.add(key)
    (data_dir / "dev-key").unlink(missing_ok=True)
    write_secret(data_dir / "dev-key", text)
    return text


@contextmanager
def _signals(lifecycle: Lifecycle) -> Iterator[None]:
    """The first SIGTERM or ctrl-c drains, the second ends at once."""

    def heed() -> None:
        (lifecycle.hurry.set if lifecycle.draining else lifecycle.stop)()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, heed)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


def _listening(host: str, port: int, bind: Callable[[], T]) -> T:
    try:
        return bind()
    except OSError as error:
        raise Misconfigured(f"Cannot listen on {host}:{port}: {error.strerror}. Choose another port.") from None
