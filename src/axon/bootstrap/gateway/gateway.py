"""Assembles a gateway, for ``axon gateway`` and for the gateway inside ``axon serve``."""

import asyncio
import contextlib
import os
import socket
import uuid
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from axon.bootstrap.control.gauges import make_backlog
from axon.bootstrap.fronts.sizing import num_processes
from axon.bootstrap.gateway.batches import Batches, open_files
from axon.bootstrap.gateway.grpc import grpc_address, grpc_reserved, open_grpc
from axon.bootstrap.gateway.parts import make_observing, open_access, open_registry, open_turns
from axon.bootstrap.measuring import open_measured
from axon.bootstrap.models.model import Text, prepare_text
from axon.bootstrap.process import Part, Process, announced, bound, counted, started
from axon.bootstrap.profiles import profiled
from axon.bootstrap.ready import Ready
from axon.bootstrap.services import (
    Services,
    require_pepper,
    require_shared,
)
from axon.domain.model.served_version import ServedVersion
from axon.registry.follower import RegistryFollower
from axon.registry.observing import Observing
from axon.runtime.cores import usable_cores
from axon.runtime.datafolder import shared
from axon.settings import Settings
from axon.telemetry.build import version

if TYPE_CHECKING:
    from axon.gateway.batches.runner import BatchRunner
    from axon.gateway.grpc.server import GrpcServer
    from axon.gateway.http.connection.server import Server
    from axon.gateway.http.last_use import LastUse
    from axon.gateway.offers.offers import Offers
    from axon.gateway.turn.follow import Follower
    from axon.gateway.turn.revoked_keys import RevokedKeys
    from axon.sessions.grammars import Grammars

_CLOSE_S = 5.0
"""Seconds for closing the remaining connections after draining."""
_LONG_S = 24 * 3600.0
"""Longer than any drain, which has a limit of its own."""

_logger = structlog.get_logger("axon.gateway")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """A gateway bound to its socket, not yet serving."""

    name: str
    http: "Server"
    registry: RegistryFollower
    observing: Observing
    offers: "Offers"
    follower: "Follower"
    last_use: "LastUse"
    revoked_keys: "RevokedKeys"
    grammars: "Grammars"
    batches: "BatchRunner"
    listener: socket.socket
    ready: Ready
    grpc: "GrpcServer | None" = None
    """None where it is not enabled."""
    gauges: tuple[Part, ...] = ()
    """What measures for those who choose among gateways."""

    @property
    def num_requests(self) -> int:
        """Requests and calls that are being answered."""
        return len(self.http.server_state.tasks) + (self.grpc.num_calls if self.grpc else 0)

    @property
    def parts(self) -> tuple[Part, ...]:
        """What runs beside each other until it is closed."""
        return self.registry.run, self.observing.run, self.offers.run, self.batches.run, self.run, *self.gauges

    async def run(self) -> None:
        """Serves until it is closed."""
        try:
            async with asyncio.TaskGroup() as tasks:
                parts = self.last_use.run, self.revoked_keys.run, self.grammars.warm
                beside = [tasks.create_task(part()) for part in parts]
                await self.http.serve(sockets=[self.listener])
                for task in beside:
                    task.cancel()
        finally:
            _logger.info("gateway.stopped")

    async def drain(self) -> None:
        """Takes no new connection, closes the idle ones, and waits for the busy ones to become idle.

        A request on a connection that was made before is answered: a balancer sends no POST twice, so a refusal would
        reach the client although another gateway could have taken it.
        """
        _logger.info("gateway.draining", requests=self.num_requests)
        self.http.should_exit = True
        await asyncio.gather(self.http.ended.wait(), self._stop_grpc(_LONG_S))

    async def close(self) -> None:
        """Ends open streams, each with an event that says that it can be resumed at another gateway."""
        self.http.should_exit = True
        try:
            async with asyncio.timeout(_CLOSE_S):
                await self.follower.end()
                await asyncio.gather(self.http.ended.wait(), self._stop_grpc(_CLOSE_S))
        except TimeoutError:
            self.http.force_exit = True
            await asyncio.gather(self.http.ended.wait(), self._stop_grpc(0.0))

    async def _stop_grpc(self, grace_s: float) -> None:
        """Lets gRPC take no new call; returns when its calls have ended, and cuts them off after ``grace_s``."""
        if self.grpc is not None:
            await self.grpc.stop(grace_s)


async def serve(settings: Settings, *, on_ready: Callable[[Ready], None]) -> int:
    """Runs until a signal stops it; returns the exit code."""
    require_shared(settings, "gateway")
    require_pepper(settings)
    config = settings.gateway
    if (num := num_processes(config, usable_cores())) > 1:
        from axon.bootstrap.fronts.parent import serve_gateways

        return await serve_gateways(settings, num, on_ready=on_ready)
    answering: Answering | None = None
    with (
        shared(settings.data_dir),
        grpc_reserved(settings) as settings,
        started(settings, "axon-gateway") as process,
        bound(config.host, config.port, "--port") as listener,
        process.probed(
            *(config.metrics_host, config.metrics_port, "--metrics-port"),
            lambda: answering is not None and answering.offers.are_known,
        ) as probes_url,
    ):
        async with AsyncExitStack() as stack:

            async def opening(stack: AsyncExitStack) -> Answering:
                services = await open_measured(process, stack)
                texts = [await asyncio.to_thread(prepare_text, each) for each in settings.each_model()]
                opened = await open_gateway(process, services, texts, listener, probes_url, stack)
                profiles.append(profiled(process, services, opened.name, "gateway"))
                return opened

            profiles: list[Part] = []
            gateway = answering = await process.opened(opening, stack)
            if gateway is None:
                return 0

            async def begun() -> None:
                process.lifecycle.ready = True
                stack.enter_context(announced(settings.data_dir / "server", gateway.ready.url))
                on_ready(gateway.ready)

            async def drain() -> None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(settings.lifecycle.drain_s):
                        await gateway.drain()

            return await process.run(
                (*gateway.parts, *profiles[-1:]),
                started=begun,
                drain=drain,
                close=gateway.close,
                running=lambda: counted(gateway.num_requests, "request"),
            )


async def open_gateway(
    process: Process,
    services: Services,
    texts: Sequence[Text],
    listener: socket.socket,
    probes_url: str,
    stack: AsyncExitStack,
    served: Sequence[ServedVersion] = (),
    process_name: str = "",
) -> Answering:
    """Assembles the gateway. ``texts`` are those of the settings' models, in order, and ``served`` their versions,
    where these are known without the workers' announcements. ``process_name`` is that of the process, if that is more
    than a gateway."""
    from axon.gateway.app import build_app
    from axon.gateway.http.connection.server import make_server
    from axon.gateway.turn.revoked_keys import RevokedKeys

    settings, name = process.settings, f"gateway-{uuid.uuid4().hex[:12]}"
    registry = await open_registry(process, services, name, stack)
    observing = make_observing(services, registry, name)
    gateway = await open_turns(process, services, registry, observing, texts, served, stack)
    access = await open_access(process, services, gateway, name, process_name or name, stack)
    batches = Batches(settings, services.store, await open_files(settings, stack))
    key = _local_key(settings)
    app = build_app(
        gateway,
        access.admin,
        access.authenticator,
        version=version(),
        local_key=key,
        batches=batches.room,
        pages=access.pages,
    )
    http = make_server(app, settings.gateway, grace_s=settings.lifecycle.drain_s + _CLOSE_S)
    listener.listen(2048)
    grpc = await open_grpc(settings, gateway, app, stack)
    return Answering(
        name=name,
        http=http,
        registry=registry,
        observing=observing,
        offers=gateway.offers,
        follower=gateway.follower,
        last_use=access.last_use,
        revoked_keys=RevokedKeys(gateway.follower, access.revocations.marked, access.revocations.stored),
        grammars=gateway.grammars,
        batches=batches.runner(app.forward, gateway, name=name),
        grpc=grpc,
        listener=listener,
        gauges=_gauges(process, services, registry),
        ready=_ready(settings, listener, probes_url, access.key, gateway.offers),
    )


def _gauges(process: Process, services: Services, registry: RegistryFollower) -> tuple[Part, ...]:
    """Counts the waiting turns for inference gateways, which know them by vLLM's name. Where the queue is in one
    process's memory, control counts there."""
    names = process.metrics.vllm
    if names is None or services.queue_forgets:
        return ()
    return (make_backlog(process, services, registry, lambda model, num, _: names.waits(model, "queue", num)).run,)


def _local_key(settings: Settings) -> str | None:
    """Returns the development key, if requests from this machine may use Ollama's routes without one."""
    path = settings.data_dir / "dev-key"
    if not settings.gateway.ollama_without_key or not path.exists():
        return None
    return path.read_text("utf-8").strip()


def _ready(settings: Settings, listener: socket.socket, probes_url: str, key: str | None, offers: "Offers") -> Ready:
    return Ready(
        url=f"http://{settings.gateway.host}:{listener.getsockname()[1]}",
        metrics_url=f"{probes_url}/metrics",
        key=key,
        key_file=settings.data_dir / "dev-key",
        models=tuple(each.model_name for each in settings.each_model()),
        pid=os.getpid(),
        waits=not offers.are_known,
        path_prefix=settings.gateway.path_prefix,
        grpc=grpc_address(settings),
    )
