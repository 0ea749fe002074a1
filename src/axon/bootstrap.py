"""Puts the process together: the only file that names an adapter, and the one owner that closes what it opens."""

import asyncio
import contextlib
import fcntl
import hashlib
import os
import secrets
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from axon.adapters.journal.sqlite import SqliteJournal
from axon.adapters.live.memory import open_memory_live
from axon.adapters.queue.memory import MemoryBroker
from axon.adapters.store.sqlite import SqliteStore
from axon.admission.admission import Admission
from axon.control.sweeper import Sweeper
from axon.dispatch.dispatch import Dispatch
from axon.dispatch.ending import Ending
from axon.domain.deployment import Deployment
from axon.domain.key import Key, digest, new_key_text
from axon.engine.messages import Ready as EngineReady
from axon.errors import Misconfigured
from axon.gateway.app import build_app
from axon.gateway.auth import Authenticator
from axon.gateway.follow import Follower
from axon.gateway.server import listen, make_server
from axon.gateway.turns import Gateway
from axon.ports.store import Store
from axon.runtime import failpoints
from axon.runtime.clock import SystemClock
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
    _refuse_unknown_services(settings)
    failpoints.arm(settings.failpoints)
    lifecycle = Lifecycle()
    with _data_folder(settings), _signals(lifecycle):
        async with _assembled(settings, lifecycle, on_progress) as server:
            return await server.run(on_ready)


@asynccontextmanager
async def open_store(settings: Settings) -> AsyncIterator[Store]:
    """The durable records alone, as the command line needs them."""
    store = SqliteStore(settings.store)
    await store.open()
    try:
        yield store
    finally:
        await store.aclose()


def load_pepper(settings: Settings) -> bytes:
    """The secret that keys are hashed with: the setting, else a file made on first use."""
    if settings.pepper:
        return settings.pepper.encode()
    path = settings.data_dir / "pepper"
    with contextlib.suppress(FileExistsError):
        _write_secret(path, secrets.token_hex(32))
    return path.read_text().strip().encode()


@dataclass(slots=True, kw_only=True)
class _Embedded:
    """Gateway, worker and control in one process."""

    settings: Settings
    lifecycle: Lifecycle
    metrics: Metrics
    gateway: Gateway
    worker: Worker
    sweeper: Sweeper
    store: Store
    pepper: bytes

    async def run(self, on_ready: Callable[[Ready], None]) -> int:
        config, settings = self.gateway.config, self.settings
        key = await _development_key(self.store, self.pepper, settings.data_dir, self.gateway.clock.now())
        app = build_app(
            self.gateway, Authenticator(self.store.keys, self.pepper, self.gateway.clock), version=version()
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
                background = [tasks.create_task(self.worker.run()), tasks.create_task(self.sweeper.run())]
                serving = tasks.create_task(http.serve(sockets=[listener]))
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


@asynccontextmanager
async def _assembled(settings: Settings, lifecycle: Lifecycle, on_progress: OnProgress) -> AsyncIterator[_Embedded]:
    clock, metrics = SystemClock(), Metrics()
    async with AsyncExitStack() as stack:
        store = SqliteStore(settings.store)
        await store.open()
        stack.push_async_callback(store.aclose)
        journal = SqliteJournal(store.turns)
        await journal.open()
        stack.push_async_callback(journal.aclose)
        live = open_memory_live(clock, retention_s=settings.sessions.retention_s)
        queue = MemoryBroker().connect()
        await queue.open()
        stack.push_async_callback(queue.aclose)

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
            admission=admission,
            dispatch=dispatch,
            follower=Follower(live, store.turns, clock, reader_grace_s=grace_s, silence_s=settings.gateway.silence_s),
            live=live,
            store=store,
            lifecycle=lifecycle,
            clock=clock,
            metrics=metrics,
        )
        sweeper = Sweeper(
            turns=store.turns,
            live=live,
            dispatch=dispatch,
            ending=ending,
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
            store=store,
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
    _write_secret(data_dir / "dev-key", text)
    return text


def _write_secret(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text + "\n")


def _refuse_unknown_services(settings: Settings) -> None:
    for name, url, known in (
        ("queue", settings.queue, "memory://"),
        ("live", settings.live, "memory://"),
        ("store", settings.store, "sqlite:///"),
    ):
        if not url.startswith(known):
            scheme = url.partition(":")[0]
            raise Misconfigured(f"The {name} cannot be on {scheme!r} in this version; use {known}.")


@contextmanager
def _data_folder(settings: Settings) -> Iterator[None]:
    """One server at a time: a second one would run the first one's unfinished turns."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(settings.data_dir / "lock", "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            raise Misconfigured(
                f"Another server (pid {file.read().strip() or '?'}) uses the data folder {settings.data_dir}. "
                "Stop it, or choose another folder with --data-dir."
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


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
