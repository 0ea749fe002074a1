"""Assembles a gateway, for ``axon gateway`` and for the gateway inside ``axon serve``."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from axon.admission.quota import Quota
from axon.bootstrap.fronts.sizing import num_processes
from axon.bootstrap.model import Text, prepare_text
from axon.bootstrap.process import Process, announced, bound, counted, started
from axon.bootstrap.registry import make_catalog
from axon.bootstrap.services import (
    Services,
    development_key,
    load_pepper,
    make_affinity,
    open_services,
    require_pepper,
    require_shared,
)
from axon.bootstrap.turn_parts import make_admission, make_dispatch
from axon.dispatch.idempotency import Idempotency
from axon.domain.served_version import ServedVersion
from axon.runtime.cores import usable_cores
from axon.runtime.datafolder import shared
from axon.sessions.prompt import Prompts
from axon.sessions.sessions import make_sessions
from axon.settings import Settings
from axon.telemetry.build import version
from axon.tenants.keyring import Keyring
from axon.tenants.revocations import Revocations
from axon.tenants.tenancy import Tenancy

if TYPE_CHECKING:
    from axon.gateway.fleet import Fleet
    from axon.gateway.http.last_use import LastUse
    from axon.gateway.http.server import Server
    from axon.gateway.turn.follow import Follower
    from axon.gateway.turn.revoked_keys import RevokedKeys

_CLOSE_S = 5.0
"""Seconds for closing the remaining connections after draining."""

_logger = structlog.get_logger("axon.gateway")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """Facts about a running server for the terminal."""

    url: str
    metrics_url: str
    key: str | None
    """The development key's text, on the start that created it."""
    key_file: Path
    model: str
    pid: int
    waits: bool = False
    """Whether it has seen no worker yet."""
    engine_pid: int | None = None
    """Process id of the engine, where this process has one."""
    num_fronts: int = 0
    """Number of processes that serve the port, where there are several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """A gateway bound to its socket, not yet serving."""

    http: "Server"
    fleet: "Fleet"
    follower: "Follower"
    last_use: "LastUse"
    revoked_keys: "RevokedKeys"
    listener: socket.socket
    ready: Ready

    async def run(self) -> None:
        """Serves until it is closed."""
        try:
            async with asyncio.TaskGroup() as tasks:
                beside = [tasks.create_task(self.last_use.run()), tasks.create_task(self.revoked_keys.run())]
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
        _logger.info("gateway.draining", requests=len(self.http.server_state.tasks))
        self.http.should_exit = True
        await self.http.ended.wait()

    async def close(self) -> None:
        """Ends open streams, each with an event that says that it can be resumed at another gateway."""
        self.http.should_exit = True
        try:
            async with asyncio.timeout(_CLOSE_S):
                await self.follower.end()
                await self.http.ended.wait()
        except TimeoutError:
            self.http.force_exit = True
            await self.http.ended.wait()


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
        started(settings) as process,
        bound(config.host, config.port, "--port") as listener,
        process.probed(
            *(config.metrics_host, config.metrics_port, "--metrics-port"),
            lambda: answering is not None and answering.fleet.known,
        ) as probes_url,
    ):
        async with AsyncExitStack() as stack:
            services = await open_services(settings, process.clock, stack)
            text = await asyncio.to_thread(prepare_text, settings)
            gateway = answering = await open_gateway(process, services, text, listener, probes_url, stack)

            async def begun() -> None:
                process.lifecycle.ready = True
                stack.enter_context(announced(settings.data_dir / "server", gateway.ready.url))
                on_ready(gateway.ready)

            async def drain() -> None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(settings.lifecycle.drain_s):
                        await gateway.drain()

            return await process.run(
                (gateway.fleet.run, gateway.run),
                started=begun,
                drain=drain,
                close=gateway.close,
                running=lambda: counted(len(gateway.http.server_state.tasks), "request"),
            )


async def open_gateway(
    process: Process,
    services: Services,
    text: Text,
    listener: socket.socket,
    probes_url: str,
    stack: AsyncExitStack,
    deployment: ServedVersion | None = None,
) -> Answering:
    """Assembles the gateway; ``deployment`` is given where it is known without the workers' announcements."""
    from axon.gateway.admin.bodies import Admin
    from axon.gateway.app import build_app
    from axon.gateway.fleet import Fleet
    from axon.gateway.http.auth import Authenticator
    from axon.gateway.http.body import Bodies
    from axon.gateway.http.guess_limit import GuessLimit
    from axon.gateway.http.last_use import LastUse
    from axon.gateway.http.server import make_server
    from axon.gateway.turn.context import Gateway
    from axon.gateway.turn.follow import Follower
    from axon.gateway.turn.opening import Opening
    from axon.gateway.turn.revoked_keys import RevokedKeys

    settings, clock, store = process.settings, process.clock, services.store
    prompts = Prompts(text.tokenizer, text.template, max_model_len=deployment.max_model_len if deployment else 0)
    bodies = Bodies(settings.gateway)
    bodies.allow_prompts(prompts.max_model_len)
    stack.callback(prompts.close)
    stack.callback(bodies.close)

    def learned(found: ServedVersion) -> None:
        prompts.max_model_len = found.max_model_len
        bodies.allow_prompts(found.max_model_len)

    fleet = Fleet(
        settings.model_name,
        text=text.mark,
        presences=services.live.presences,
        learned=learned,
        metrics=process.metrics,
        deployment=deployment,
        has_pools=not services.queue_forgets,
    )
    sessions = make_sessions(services.live, store, services.journal, clock, settings.sessions)
    follower = Follower(
        services.live,
        store.turns,
        sessions.lookup,
        clock,
        reader_grace_s=settings.sessions.reader_grace_s,
        silence_s=settings.gateway.silence_s,
    )
    admission = make_admission(settings, services, clock, fleet.tokens_per_s)
    _, affinity = make_affinity(settings.dispatch, services, clock)
    idempotency = Idempotency(services.live.log, store.turns)
    quota = Quota(store.storage.stored, clock)
    gateway = Gateway(
        config=settings.gateway,
        sessions_config=settings.sessions,
        dispatch_config=settings.dispatch,
        bodies=bodies,
        fleet=fleet,
        prompts=prompts,
        opening=Opening(admission, make_dispatch(settings, services, affinity), idempotency, clock, quota=quota),
        quota=quota,
        follower=follower,
        sessions=sessions,
        lifecycle=process.lifecycle,
        clock=clock,
        metrics=process.metrics,
    )
    pepper = load_pepper(settings)
    key = await development_key(store, pepper, settings.data_dir, clock.now())
    revocations, defaults = Revocations(services.live.cache, store.keys, clock), settings.admission.terms
    admin = Admin(
        tenancy=Tenancy(store, clock, defaults=defaults),
        keyring=Keyring(store.keys, revocations.revoke, lambda: pepper, clock),
        catalog=make_catalog(settings, store, clock, services.live),
        clock=clock,
    )
    last_use = LastUse(store.keys, clock)
    authenticator = Authenticator(
        store.keys,
        pepper,
        clock,
        defaults=defaults,
        revoked=revocations.revoked,
        guesses=GuessLimit(settings.gateway.failures_per_minute, clock),
        used=last_use.note,
    )
    app = build_app(gateway, admin, authenticator, version=version())
    http = make_server(app, settings.gateway, grace_s=settings.lifecycle.drain_s + _CLOSE_S)
    listener.listen(2048)
    ready = _ready(settings, listener, probes_url, key, fleet)
    return Answering(
        http=http,
        fleet=fleet,
        follower=follower,
        last_use=last_use,
        revoked_keys=RevokedKeys(follower, revocations.marked, revocations.stored),
        listener=listener,
        ready=ready,
    )


def _ready(settings: Settings, listener: socket.socket, probes_url: str, key: str | None, fleet: "Fleet") -> Ready:
    return Ready(
        url=f"http://{settings.gateway.host}:{listener.getsockname()[1]}",
        metrics_url=f"{probes_url}/metrics",
        key=key,
        key_file=settings.data_dir / "dev-key",
        model=settings.model_name,
        pid=os.getpid(),
        waits=not fleet.known,
    )
