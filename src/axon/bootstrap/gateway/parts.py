"""Makes the parts of a gateway: what admits and follows turns, and what knows keys and tenants. Knows no socket.

The gateway's packages are imported where they are needed: a process that serves none of them starts without them.
"""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from axon.admission.admission import Admission
from axon.admission.line import read_lines
from axon.admission.quota import Quota
from axon.bootstrap.gateway.cli_flags import cli_flags
from axon.bootstrap.gateway.offers import make_offers
from axon.bootstrap.gateway.oidc import make_oidc
from axon.bootstrap.models.model import Text
from axon.bootstrap.process import Process
from axon.bootstrap.registry import make_catalog, make_follower
from axon.bootstrap.services import Services, development_key, load_pepper, make_affinity
from axon.bootstrap.turn_parts import make_admission, make_dispatch
from axon.dispatch.dispatch import Dispatch
from axon.dispatch.idempotency import Idempotency
from axon.domain.model.served_version import ServedVersion
from axon.domain.registry.adapter import Adapter
from axon.domain.session.pin import Reason
from axon.profiling.asking import Profiles
from axon.registry.drain_orders import DrainOrders
from axon.registry.fleet_report import FleetReports
from axon.registry.follower import RegistryFollower
from axon.registry.holders import Holders
from axon.registry.observations import Observations
from axon.registry.observing import Observing
from axon.sessions.sessions import Sessions, make_sessions
from axon.sessions.traced_turns import TracedTurns
from axon.settings import Settings, describe, in_effect
from axon.telemetry import logs
from axon.telemetry.build import version
from axon.tenants.keyring import Keyring
from axon.tenants.one_time_codes import OneTimeCodes
from axon.tenants.revocations import Revocations
from axon.tenants.tenancy import Tenancy

if TYPE_CHECKING:
    from axon.gateway.admin.bodies import Admin
    from axon.gateway.admin.settings import SettingInEffect
    from axon.gateway.http.auth import Authenticator
    from axon.gateway.http.body import Bodies
    from axon.gateway.http.guess_limit import GuessLimit
    from axon.gateway.http.last_use import LastUse
    from axon.gateway.pages.parts import Pages
    from axon.gateway.turn.context import Gateway
    from axon.gateway.turn.follow import Follower
    from axon.gateway.turn.observer import TurnObserving
    from axon.gateway.turn.opening import Opening
    from axon.ports.alerts import Alerts
    from axon.sessions.grammars import Grammars


async def open_registry(process: Process, services: Services, name: str, stack: AsyncExitStack) -> RegistryFollower:
    """Reads the registry and follows it; the stack ends that."""
    registry = make_follower(services.store, services.live, process.clock, holder=name)
    await registry.open()
    stack.push_async_callback(registry.aclose)
    return registry


async def open_turns(
    process: Process,
    services: Services,
    registry: RegistryFollower,
    observing: Observing,
    texts: Sequence[Text],
    served: Sequence[ServedVersion],
    stack: AsyncExitStack,
) -> "Gateway":
    """Makes what a turn passes on its way in and out. ``texts`` and ``served`` are those of ``open_gateway``."""
    from axon.gateway.http.tracing import RequestTraces
    from axon.gateway.turn.context import Gateway
    from axon.gateway.turn.observer import TurnObserving

    settings, clock = process.settings, process.clock
    bodies, grammars = _open_bodies(process, stack), _open_grammars(process, stack)
    offers = make_offers(process, services, texts, served, registry, bodies, stack)
    await offers.look()  # otherwise every model would seem to have no worker in the first second
    sessions, observer = _make_sessions(process, services), TurnObserving(observing)
    admission = make_admission(settings, services, clock, offers.tokens_per_s, offers.await_more)
    _, affinity = make_affinity(settings.dispatch, services, clock, zone=settings.zone)
    dispatch = make_dispatch(settings, services, affinity, offers.has)
    quota = Quota(services.store.storage.stored, clock)
    return Gateway(
        config=settings.gateway,
        sessions_config=settings.sessions,
        dispatch_config=settings.dispatch,
        bodies=bodies,
        grammars=grammars,
        offers=offers,
        opening=_make_opening(process, services, admission, dispatch, quota),
        quota=quota,
        follower=_make_follower(process, services, sessions, observer),
        observer=observer,
        sessions=sessions,
        lifecycle=process.lifecycle,
        clock=clock,
        metrics=process.metrics,
        traces=RequestTraces(process.traces, clock) if process.traces is not None else None,
    )


def make_observing(services: Services, registry: RegistryFollower, name: str) -> Observing:
    """Counts the turns of rollouts at this gateway."""
    return Observing(Observations(services.live.cache), gateway=name, snapshot=lambda: registry.snapshot)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What knows keys and tenants."""

    admin: "Admin"
    authenticator: "Authenticator"
    last_use: "LastUse"
    revocations: Revocations
    pages: "Pages"
    key: str | None
    """The development key's text, on the start that created it."""


async def open_access(
    process: Process, services: Services, gateway: "Gateway", name: str, process_name: str, stack: AsyncExitStack
) -> Access:
    """Makes what knows keys and tenants, and the development key if there is none yet. ``name`` is the gateway's, and
    ``process_name`` that of the process that it is in. The stack ends what was started."""
    from axon.gateway.admin.bodies import Admin
    from axon.gateway.admin.overviews import Overviews
    from axon.gateway.http.auth import Authenticator
    from axon.gateway.http.guess_limit import GuessLimit
    from axon.gateway.http.last_use import LastUse

    settings, clock, store, live = process.settings, process.clock, services.store, services.live
    pepper = load_pepper(settings)
    key = await development_key(store, pepper, settings.data_dir, clock.now())
    revocations, defaults = Revocations(live.cache, store.keys, clock), settings.admission.terms
    last_use, reports, sessions = LastUse(store.keys, clock), FleetReports(live.cache), gateway.sessions
    admin = Admin(
        tenancy=Tenancy(store, clock, defaults=defaults),
        keyring=Keyring(store.keys, revocations.revoke, lambda: pepper, clock),
        catalog=make_catalog(settings, store, clock, live, sessions.pins.count, sessions.lookup.behind_barrier),
        fleet=reports,
        overviews=Overviews(name, partial(read_lines, live.accounts), Holders(live.cache), reports, clock),
        profiles=Profiles(live, clock, own=process_name),
        lines=logs.recent(),
        process=name,
        alerts=_open_alerts(settings.alerts.url),
        traced=TracedTurns(sessions.lookup, live.log, store.turns, clock),
        observations=Observations(live.cache),
        drains=DrainOrders(live.wakeups),
        audit=store.audit,
        settings=lambda: settings_in_effect(settings),
        fetch_adapter=partial(_fetch_adapter, settings),
        clock=clock,
    )
    guesses = GuessLimit(settings.gateway.failures_per_minute, clock)
    authenticator = Authenticator(
        store.keys,
        pepper,
        clock,
        defaults=defaults,
        revoked=revocations.revoked,
        guesses=guesses,
        used=last_use.note,
    )
    pages = _open_pages(process, services, authenticator, guesses, stack)
    return Access(
        admin=admin, authenticator=authenticator, last_use=last_use, revocations=revocations, pages=pages, key=key
    )


def _open_pages(
    process: Process,
    services: Services,
    authenticator: "Authenticator",
    guesses: "GuessLimit",
    stack: AsyncExitStack,
) -> "Pages":
    from axon.gateway.pages.assets import Assets
    from axon.gateway.pages.parts import Pages
    from axon.gateway.pages.rendering.renderer import Renderer
    from axon.gateway.pages.sign_in import SignIn
    from axon.gateway.pages.web_sessions import WebSessions

    config, clock = process.settings.gateway, process.clock
    sessions = WebSessions(services.store.web_sessions, authenticator, clock, config)
    codes, renderer = OneTimeCodes(services.live.cache, clock), Renderer(clock=clock, metrics=process.metrics.renders)
    stack.push_async_callback(renderer.aclose)
    return Pages(
        sign_in=SignIn(authenticator, sessions, codes, guesses),
        sessions=sessions,
        assets=Assets(),
        oidc=make_oidc(process.settings, services.live.cache, clock),
        renderer=renderer,
        config=config,
        version=version(),
        cli=cli_flags(process.settings, default_data_dir=Settings().data_dir),
    )


def settings_in_effect(settings: Settings) -> "list[SettingInEffect]":
    """Every setting of this process with its origin, without secrets."""
    from axon.gateway.admin.settings import SettingInEffect

    values = in_effect(settings)
    return [
        SettingInEffect(
            id=each.name,
            value=values[each.name][0],
            origin=values[each.name][1],
            default=each.default,
            type=each.type,
            variable=each.variable,
            meaning=each.doc,
        )
        for each in describe()
    ]


async def _fetch_adapter(settings: Settings, model: str, label: str, source: str, tenant: str) -> Adapter:
    from axon.bootstrap.models.adapters import fetch_adapter

    return await fetch_adapter(settings, model=model, label=label, source=source, tenant=tenant)


def _open_alerts(url: str) -> "Alerts | None":
    """Whoever is asked for alerts; None where nobody is configured."""
    if not url:
        return None
    from axon.adapters.alerts.alertmanager import Alertmanager

    return Alertmanager(url)


def _open_bodies(process: Process, stack: AsyncExitStack) -> "Bodies":
    from axon.gateway.http.body import Bodies

    bodies = Bodies(process.settings.gateway)
    stack.callback(bodies.close)
    return bodies


def _open_grammars(process: Process, stack: AsyncExitStack) -> "Grammars":
    from axon.sessions.compiler import Compiler
    from axon.sessions.grammars import Grammars

    grammars = Grammars(Compiler(), metrics=process.metrics.grammars, clock=process.clock)
    stack.push_async_callback(grammars.aclose)
    return grammars


def _make_sessions(process: Process, services: Services) -> Sessions:
    sessions = process.metrics.sessions
    for reason in Reason:
        sessions.moved.labels(reason)  # a counter that begins at 1 would hide its first event
    live, store, settings = services.live, services.store, process.settings
    return make_sessions(
        live,
        store,
        services.journal,
        process.clock,
        settings.sessions,
        on_moved=lambda reason: sessions.moved.labels(reason).inc(),
        on_conflict=lambda kind: sessions.pin_conflicts.labels(kind).inc(),
        on_erased=lambda: sessions.evictions.labels("erased").inc(),
        on_gone_on=lambda idle_s: sessions.idle.labels("turn").observe(idle_s),
    )


def _make_opening(
    process: Process, services: Services, admission: Admission, dispatch: Dispatch, quota: Quota
) -> "Opening":
    from axon.gateway.turn.opening import Opening

    idempotency = Idempotency(services.live.log, services.store.turns)
    return Opening(admission, dispatch, idempotency, process.clock, quota=quota)


def _make_follower(process: Process, services: Services, sessions: Sessions, observer: "TurnObserving") -> "Follower":
    from axon.gateway.turn.follow import Follower

    settings = process.settings
    return Follower(
        services.live,
        services.store.turns,
        sessions.lookup,
        process.clock,
        reader_grace_s=settings.sessions.reader_grace_s,
        silence_s=settings.gateway.silence_s,
        observer=observer,
    )
