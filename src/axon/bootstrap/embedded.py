"""``axon serve``: gateway, worker and control in one process, and the one owner that closes what it opens."""

import asyncio
import contextlib
import importlib
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from axon.admission.admission import Admission
from axon.bootstrap.model import OnProgress, deployment_of, prepare_model
from axon.bootstrap.presence import make_announcer, named
from axon.bootstrap.services import Services, development_key, load_pepper, make_affinity, open_services
from axon.control.retention import Retention
from axon.control.sweeper import Sweeper
from axon.dispatch.dispatch import Dispatch
from axon.dispatch.ending import Ending, Forget
from axon.dispatch.idempotency import Idempotency
from axon.dispatch.liveness import Liveness
from axon.domain.deployment import Deployment
from axon.domain.job import Job
from axon.errors import DependencyDown, Misconfigured
from axon.runtime import failpoints
from axon.runtime.clock import Clock, SystemClock
from axon.runtime.datafolder import locked
from axon.runtime.lag import watch_lag
from axon.runtime.lifecycle import Lifecycle
from axon.sessions.prompt import Prompts
from axon.sessions.sessions import make_sessions
from axon.settings import Settings
from axon.telemetry.build import version
from axon.telemetry.metrics import Metrics
from axon.worker.engine_process import EngineProcess
from axon.worker.presence import Announcer
from axon.worker.worker import Worker

if TYPE_CHECKING:
    from axon.gateway.turns import Gateway

T = TypeVar("T")


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


async def serve(settings: Settings, *, on_ready: Callable[[Ready], None], on_progress: OnProgress) -> int:
    """Runs until it is told to stop; returns the exit code."""
    failpoints.arm(settings.failpoints)
    lifecycle = Lifecycle()
    with locked(settings.data_dir), named(settings) as name, _signals(lifecycle), _bound(settings) as listener:
        async with _assembled(settings, name, lifecycle, on_progress) as server:
            return await server.run(listener, on_ready)


@dataclass(slots=True, kw_only=True)
class _Embedded:
    """Everything, made and not yet running."""

    settings: Settings
    lifecycle: Lifecycle
    metrics: Metrics
    gateway: "Gateway"
    worker: Worker
    announcer: Announcer
    sweeper: Sweeper
    retention: Retention
    services: Services

    async def run(self, listener: socket.socket, on_ready: Callable[[Ready], None]) -> int:
        from axon.gateway.app import build_app
        from axon.gateway.auth import Authenticator
        from axon.gateway.server import make_server

        config, clock, store = self.settings.gateway, self.gateway.clock, self.services.store
        pepper = load_pepper(self.settings)
        key = await development_key(store, pepper, self.settings.data_dir, clock.now())
        http = make_server(build_app(self.gateway, Authenticator(store.keys, pepper, clock), version=version()), config)
        metrics_port, close_metrics = _listening(
            *(config.metrics_host, config.metrics_port, "gateway.metrics_port"),
            lambda: self.metrics.serve(config.metrics_host, config.metrics_port),
        )
        listener.listen(2048)
        ready = Ready(
            url=f"http://{config.host}:{listener.getsockname()[1]}",
            metrics_url=f"http://{config.metrics_host}:{metrics_port}/metrics",
            key=key,
            key_file=self.settings.data_dir / "dev-key",
            model=self.gateway.deployment.name,
            pid=os.getpid(),
        )
        try:
            async with asyncio.TaskGroup() as tasks:
                parts = (
                    *(self.worker.run, self.announcer.run, self.sweeper.run, self.retention.run, self._watch_lag),
                    *self.services.background,
                )
                background = [tasks.create_task(part()) for part in parts]
                serving = tasks.create_task(http.serve(sockets=[listener]))
                if self.services.queue_forgets:
                    await self.sweeper.recover()
                self.lifecycle.ready = True
                with _announced(self.settings.data_dir / "server", ready.url):
                    on_ready(ready)
                    await self.lifecycle.stopping.wait()
                self.metrics.draining.set(1)
                await self._drain()
                http.should_exit = True
                await serving
                for task in background:
                    task.cancel()
        finally:
            close_metrics()
        return 0

    async def _watch_lag(self) -> None:
        await watch_lag(self.gateway.clock, self.metrics.event_loop_lag.observe)

    async def _drain(self) -> None:
        """Lets what runs end; a second signal ends the waiting."""
        drain_s, forgets = self.settings.lifecycle.drain_s, self.services.queue_forgets
        async with asyncio.TaskGroup() as tasks:
            draining = tasks.create_task(self.worker.drain(drain_s, empty_queue=forgets, hand_over=False))
            hurrying = tasks.create_task(self.lifecycle.hurry.wait())
            await asyncio.wait([draining, hurrying], return_when=asyncio.FIRST_COMPLETED)
            draining.cancel()
            hurrying.cancel()


@asynccontextmanager
async def _assembled(
    settings: Settings, name: str, lifecycle: Lifecycle, on_progress: OnProgress
) -> AsyncIterator[_Embedded]:
    clock, metrics = SystemClock(), Metrics()
    async with AsyncExitStack() as stack:
        services = await open_services(settings, clock, stack)
        model = await asyncio.to_thread(prepare_model, settings, on_progress)
        admission = Admission(services.live.buckets, settings.admission, ticket_ttl_s=_ticket_ttl_s(settings))
        ending = Ending(services.journal, admission.settle, clock, _forgetting(settings, services))
        residences, affinity = make_affinity(settings.dispatch, services, clock)
        worker = Worker(
            deployment=settings.model_name,
            num_lanes=settings.dispatch.num_lanes,
            queue=services.queue,
            live=services.live,
            turns=services.store.turns,
            ending=ending,
            tokenizer=model.tokenizer,
            make_engine=lambda: EngineProcess(settings.engine, model.folder),
            config=settings.worker,
            reader_grace_s=settings.sessions.reader_grace_s,
            clock=clock,
            metrics=metrics,
            name=name,
            residences=residences,
        )
        stack.push_async_callback(worker.aclose)
        on_progress("Loading the model", None)
        engine, _ = await asyncio.gather(worker.open(), _import_gateway())
        prompts = Prompts(model.tokenizer, model.template, max_model_len=engine.max_model_len)
        stack.callback(prompts.close)
        dispatch = Dispatch(
            log=services.live.log,
            journal=services.journal,
            queue=services.queue,
            wakeups=services.live.wakeups,
            config=settings.dispatch,
            reader_grace_s=settings.sessions.reader_grace_s,
            affinity=affinity,
        )
        deployment = deployment_of(settings.model_name, model, engine, clock.now())
        worker.version = deployment.version
        announcer = make_announcer(worker, name, deployment, services.live, lifecycle, settings.worker, clock)
        stack.push_async_callback(announcer.leave)
        yield _Embedded(
            settings=settings,
            lifecycle=lifecycle,
            metrics=metrics,
            gateway=_gateway(settings, services, deployment, prompts, admission, dispatch, lifecycle, clock, metrics),
            worker=worker,
            announcer=announcer,
            sweeper=Sweeper(
                turns=services.store.turns,
                live=services.live,
                queue=services.queue,
                dispatch=dispatch,
                ending=ending,
                liveness=Liveness(services.live.leases, clock, lease_s=settings.worker.lease_s),
                readmit=admission.readmit,
                config=settings.control,
                retention_s=settings.sessions.retention_s,
                clock=clock,
            ),
            retention=Retention(
                services.store.turns,
                services.store.conversations,
                services.store.tombstones,
                idle_ttl_s=settings.sessions.idle_ttl_s,
                clock=clock,
            ),
            services=services,
        )


def _gateway(
    settings: Settings,
    services: Services,
    deployment: Deployment,
    prompts: Prompts,
    admission: Admission,
    dispatch: Dispatch,
    lifecycle: Lifecycle,
    clock: Clock,
    metrics: Metrics,
) -> "Gateway":
    from axon.gateway.follow import Follower
    from axon.gateway.opening import Opening
    from axon.gateway.turns import Gateway

    return Gateway(
        config=settings.gateway,
        sessions=settings.sessions,
        dispatching=settings.dispatch,
        deployment=deployment,
        prompts=prompts,
        opening=Opening(admission, dispatch, Idempotency(services.live.log, services.store.turns), clock),
        follower=Follower(
            services.live,
            services.store.turns,
            services.journal,
            clock,
            reader_grace_s=settings.sessions.reader_grace_s,
            silence_s=settings.gateway.silence_s,
        ),
        kept=make_sessions(services.live, services.store, services.journal, clock, settings.sessions),
        lifecycle=lifecycle,
        clock=clock,
        metrics=metrics,
    )


def _forgetting(settings: Settings, services: Services) -> Forget:
    """A stream that is kept nowhere stays for as long as its reader may be away."""

    async def forget(job: Job) -> None:
        with contextlib.suppress(DependencyDown):  # then it leaves by itself, at the end of its time
            await services.live.log.forget(job.id, in_s=settings.sessions.reader_grace_s)

    return forget


async def _import_gateway() -> None:
    """The web framework takes a second to import: the time in which the engine's process reads its model."""
    await asyncio.sleep(0.05)  # the engine's process comes first
    await asyncio.to_thread(importlib.import_module, "axon.gateway.app")


def _ticket_ttl_s(settings: Settings) -> float:
    return settings.sessions.turn_timeout_s + settings.sessions.reader_grace_s


@contextmanager
def _bound(settings: Settings) -> Iterator[socket.socket]:
    """The API's address, taken before anything slow is done."""
    host, port = settings.gateway.host, settings.gateway.port
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _listening(host, port, "--port", lambda: listener.bind((host, port)))
        yield listener


def _listening(host: str, port: int, setting: str, bind: Callable[[], T]) -> T:
    try:
        return bind()
    except OSError as error:
        raise Misconfigured(
            f"Cannot listen on {host}:{port}: {error.strerror}. Choose another address, or another port with {setting}."
        ) from None


@contextmanager
def _announced(path: Path, url: str) -> Iterator[None]:
    """Where the command line finds a server that uses the same data folder."""
    path.write_text(url + "\n")
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


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
