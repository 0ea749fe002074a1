"""Assembles a gateway, for ``axon gateway`` and for the gateway inside ``axon serve``."""

import asyncio
import contextlib
import os
import socket
import uuid
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from axon.admission.quota import Quota
from axon.bootstrap.fronts.sizing import num_processes
from axon.bootstrap.model import Text, prepare_text
from axon.bootstrap.offers import make_offers
from axon.bootstrap.process import Part, Process, announced, bound, counted, started
from axon.bootstrap.registry import make_catalog, make_follower
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
from axon.registry.fleet_report import FleetReports
from axon.registry.follower import RegistryFollower
from axon.registry.observations import Observations
from axon.registry.observing import Observing
from axon.runtime.cores import usable_cores
from axon.runtime.datafolder import shared
from axon.sessions.sessions import make_sessions
from axon.settings import Settings
from axon.telemetry.build import version
from axon.tenants.keyring import Keyring
from axon.tenants.revocations import Revocations
from axon.tenants.tenancy import Tenancy

if TYPE_CHECKING:
    from axon.gateway.http.last_use import LastUse
    from axon.gateway.http.server import Server
    from axon.gateway.offers.offers import Offers
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
    models: tuple[str, ...]
    pid: int
    waits: bool = False
    """Whether it has seen no worker yet."""
    engine_pids: tuple[int, ...] = ()
    """Process ids of the engines, where this process has any."""
    num_fronts: int = 0
    """Number of processes that serve the port, where there are several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """A gateway bound to its socket, not yet serving."""

    http: "Server"
    registry: RegistryFollower
    observing: Observing
    offers: "Offers"
    follower: "Follower"
    last_use: "LastUse"
    revoked_keys: "RevokedKeys"
    listener: socket.socket
    ready: Ready

    @property
    def parts(self) -> tuple[Part, ...]:
        """What runs beside each other until it is closed."""
        return self.registry.run, self.observing.run, self.offers.run, self.run

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
            lambda: answering is not None and answering.offers.are_known,
        ) as probes_url,
    ):
        async with AsyncExitStack() as stack:
            services = await open_services(settings, process.clock, stack)
            texts = [await asyncio.to_thread(prepare_text, each) for each in settings.each_model()]
            gateway = answering = await open_gateway(process, services, texts, listener, probes_url, stack)

            async def begun() -> None:
                process.lifecycle.ready = True
                stack.enter_context(announced(settings.data_dir / "server", gateway.ready.url))
                on_ready(gateway.ready)

            async def drain() -> None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(settings.lifecycle.drain_s):
                        await gateway.drain()

            return await process.run(
                gateway.parts,
                started=begun,
                drain=drain,
                close=gateway.close,
                running=lambda: counted(len(gateway.http.server_state.tasks), "request"),
            )


async def open_gateway(
    process: Process,
    services: Services,
    texts: Sequence[Text],
    listener: socket.socket,
    probes_url: str,
    stack: AsyncExitStack,
    served: Sequence[ServedVersion] = (),
) -> Answering:
    """Assembles the gateway. ``texts`` are those of the settings' models, in order, and ``served`` their versions,
    where these are known without the workers' announcements."""
    from axon.gateway.admin.bodies import Admin
    from axon.gateway.app import build_app
    from axon.gateway.http.auth import Authenticator
    from axon.gateway.http.body import Bodies
    from axon.gateway.http.guess_limit import GuessLimit
    from axon.gateway.http.last_use import LastUse
    from axon.gateway.http.server import make_server
    from axon.gateway.turn.context import Gateway
    from axon.gateway.turn.follow import Follower
    from axon.gateway.turn.observer import TurnObserving
    from axon.gateway.turn.opening import Opening
    from axon.gateway.turn.revoked_keys import RevokedKeys
    from axon.sessions.grammars import Grammars

    settings, clock, store = process.settings, process.clock, services.store
    bodies = Bodies(settings.gateway)
    stack.callback(bodies.close)
    grammars = Grammars()
    stack.callback(grammars.close)
    name = f"gateway-{uuid.uuid4().hex[:12]}"
    registry = make_follower(store, services.live, clock, holder=name)
    await registry.open()
    stack.push_async_callback(registry.aclose)
    offers = make_offers(process, services, texts, served, registry, bodies, stack)
    await offers.look()  # otherwise every model would seem to have no worker in the first second
    sessions = make_sessions(
        services.live,
        store,
        services.journal,
        clock,
        settings.sessions,
        lambda reason: process.metrics.sessions_moved.labels(reason).inc(),
    )
    observing = Observing(Observations(services.live.cache), gateway=name, snapshot=lambda: registry.snapshot)
    observer = TurnObserving(observing)
    follower = Follower(
        services.live,
        store.turns,
        sessions.lookup,
        clock,
        reader_grace_s=settings.sessions.reader_grace_s,
        silence_s=settings.gateway.silence_s,
        observer=observer,
    )
    admission = make_admission(settings, services, clock, offers.tokens_per_s, offers.await_more)
    _, affinity = make_affinity(settings.dispatch, services, clock, zone=settings.zone)
    dispatch = make_dispatch(settings, services, affinity, offers.has)
    idempotency = Idempotency(services.live.log, store.turns)
    quota = Quota(store.storage.stored, clock)
    gateway = Gateway(
        config=settings.gateway,
        sessions_config=settings.sessions,
        dispatch_config=settings.dispatch,
        bodies=bodies,
        grammars=grammars,
        offers=offers,
        opening=Opening(admission, dispatch, idempotency, clock, quota=quota),
        quota=quota,
        follower=follower,
        observer=observer,
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
        catalog=make_catalog(
            settings, store, clock, services.live, sessions.pins.count, sessions.lookup.behind_barrier
        ),
        fleet=FleetReports(services.live.cache),
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
    ready = _ready(settings, listener, probes_url, key, offers)
    return Answering(
        http=http,
        registry=registry,
        observing=observing,
        offers=offers,
        follower=follower,
        last_use=last_use,
        revoked_keys=RevokedKeys(follower, revocations.marked, revocations.stored),
        listener=listener,
        ready=ready,
    )


def _ready(settings: Settings, listener: socket.socket, probes_url: str, key: str | None, offers: "Offers") -> Ready:
    return Ready(
        url=f"http://{settings.gateway.host}:{listener.getsockname()[1]}",
        metrics_url=f"{probes_url}/metrics",
        key=key,
        key_file=settings.data_dir / "dev-key",
        models=tuple(each.model_name for each in settings.each_model()),
        pid=os.getpid(),
        waits=not offers.are_known,
    )
