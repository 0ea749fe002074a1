"""Assembles control, for ``axon control`` and for the control inside ``axon serve``."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from axon.bootstrap.control.gauges import ShownRollouts, gauge_parts
from axon.bootstrap.control.launching import make_election, make_reconciler, require_no_launcher
from axon.bootstrap.measuring import open_measured
from axon.bootstrap.models.version_text import text_loader
from axon.bootstrap.process import Part, Process, Up, started
from axon.bootstrap.profiles import profiled
from axon.bootstrap.registry import make_follower, make_writer, removed_in
from axon.bootstrap.services import Services, open_persister, require_shared
from axon.bootstrap.traces import turn_traces
from axon.bootstrap.turn_parts import make_admission, make_dispatch, make_ending
from axon.control.drains import Drains
from axon.control.golden import GoldenChecks
from axon.control.golden_turns import GoldenTurns
from axon.control.gone import GoneVersions
from axon.control.leader import Leader
from axon.control.retention import Retention
from axon.control.rollouts import Rollouts
from axon.control.sweeper import Sweeper
from axon.control.version_uses import VersionUses
from axon.dispatch.dispatch import Dispatch
from axon.ownership.liveness import Liveness
from axon.registry.follower import RegistryFollower
from axon.registry.holders import Holders
from axon.registry.observations import Observations
from axon.registry.writer import RegistryWriter
from axon.sessions.prompt import Threads
from axon.sessions.sessions import Sessions, make_sessions
from axon.settings import Settings
from axon.tenants.revocations import Revocations

Leads = Callable[[], bool]
"""Whether this control is to act."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The parts of control, assembled and not yet running."""

    leader: Leader
    election: Leader
    """Who launches workers, if this control has a launcher."""
    sweeper: Sweeper
    parts: tuple[Part, ...]

    async def leave(self) -> None:
        """Gives up what it leads, so that others need not wait."""
        await self.leader.leave()
        await self.election.leave()


async def serve(settings: Settings, *, on_ready: Callable[[Up], None]) -> int:
    """Runs until a signal stops it; returns the exit code."""
    require_shared(settings, "control")
    config = settings.control
    with started(settings, "axon-control") as process:
        async with AsyncExitStack() as stack:
            setting = "--metrics-port"
            url = stack.enter_context(process.probed(config.metrics_host, config.metrics_port, setting, lambda: True))

            async def opening(stack: AsyncExitStack) -> Control:
                services = await open_measured(process, stack)
                opened = await open_control(process, services, stack)
                profiles.append(profiled(process, services, opened.leader.name, "control"))
                return opened

            profiles: list[Part] = []
            control = await process.opened(opening, stack)
            if control is None:
                return 0

            async def begun() -> None:
                process.lifecycle.ready = True
                on_ready(Up(role="control", facts=(("Name", control.leader.name), ("Metrics", f"{url}/metrics"))))

            return await process.run((*control.parts, *profiles[-1:]), started=begun, drain=control.leave)


async def open_control(
    process: Process, services: Services, stack: AsyncExitStack, *, stands_by: bool = True
) -> Control:
    """Assembles control. With ``stands_by`` it works only while it is the elected leader; without, always.

    ``axon serve`` does not stand by: if such a process dies as leader together with its worker, recovery of the
    worker's turns elsewhere need not wait for a new election.
    """
    settings, clock, store, live = process.settings, process.clock, services.store, services.live
    if not stands_by:
        require_no_launcher(settings)
        process.metrics.fleet.leads.set(1)
    leader = Leader(live.crowds, clock, lease_s=settings.control.lease_s, on_change=process.metrics.fleet.leads.set)
    stack.push_async_callback(leader.leave)
    leads = leader.leads if stands_by else lambda: True
    registry = make_follower(store, live, clock)
    await registry.open()
    dispatch = make_dispatch(settings, services, is_ours=_is_ours(settings, registry))
    sessions = make_sessions(live, store, services.journal, clock, settings.sessions)
    sweeper = _make_sweeper(process, services, registry, dispatch, leads)
    golden = _open_golden(process, registry, dispatch, sessions, stack)
    writer = make_writer(store, clock, live)
    led = (
        sweeper.run,
        _make_retention(process, services, leads).run,
        Revocations(live.cache, store.keys, clock, leads=leads).run,
        _make_rollouts(process, services, writer, golden, leads).run,
        golden.run,
        _make_drains(process, services, writer, sessions, leads).run,
    )
    persister = await open_persister(settings, services, clock, stack, process.metrics.queue.dead_letters.inc)
    election = make_election(process, services, name=leader.name)
    stack.push_async_callback(election.leave)
    reconciler = await make_reconciler(process, services, stack, name=leader.name, leads=election.leads)
    standing = (leader.run,) if stands_by else ()
    launched = (election.run, reconciler.run) if reconciler else ()
    pending = persister.pending if persister else services.pending
    gauges = gauge_parts(process, services, registry, leads, pending)
    parts = (*standing, registry.run, *led, *launched, *gauges, *((persister.run,) if persister else ()))
    return Control(leader=leader, election=election, sweeper=sweeper, parts=parts)


def _is_ours(settings: Settings, registry: RegistryFollower) -> Callable[[str], bool]:
    """Whether a deployment is one of the settings' models or registered."""
    names = frozenset(each.model_name for each in settings.each_model())
    return lambda deployment: deployment in names or deployment in registry.snapshot.deployments


def _make_sweeper(
    process: Process, services: Services, registry: RegistryFollower, dispatch: Dispatch, leads: Leads
) -> Sweeper:
    settings, clock, live = process.settings, process.clock, services.live
    admission = make_admission(settings, services, clock)
    return Sweeper(
        turns=services.store.turns,
        live=live,
        queue=services.queue,
        dispatch=dispatch,
        ending=make_ending(settings, services, admission, clock, turn_traces(process.traces)),
        liveness=Liveness(live.leases, clock, lease_s=settings.worker.lease_s, wakeups=live.wakeups),
        readmit=admission.readmit,
        renew=admission.renew,
        renew_s=settings.admission.ticket_s / 4,
        leads=leads,
        gone=GoneVersions(live.presences, clock, is_removed=removed_in(registry)),
        config=settings.control,
        retention_s=settings.sessions.retention_s,
        clock=clock,
    )


def _make_retention(process: Process, services: Services, leads: Leads) -> Retention:
    store, idle_ttl_s = services.store, process.settings.sessions.idle_ttl_s
    sessions = process.metrics.sessions

    def note_evicted(num: int) -> None:
        sessions.evictions.labels("idle").inc(num)
        for _ in range(num):
            sessions.idle.labels("eviction").observe(idle_ttl_s)

    return Retention(
        store.turns,
        store.conversations,
        store.tombstones,
        idle_ttl_s=idle_ttl_s,
        leads=leads,
        clock=process.clock,
        on_evicted=note_evicted,
    )


def _open_golden(
    process: Process, registry: RegistryFollower, dispatch: Dispatch, sessions: Sessions, stack: AsyncExitStack
) -> GoldenChecks:
    threads = Threads()
    stack.callback(threads.close)
    texts = text_loader(process.settings, threads)
    turns = GoldenTurns(lambda: registry.snapshot, texts, dispatch, sessions.lookup, process.clock)
    return GoldenChecks(turns.ask)


def _make_rollouts(
    process: Process, services: Services, writer: RegistryWriter, golden: GoldenChecks, leads: Leads
) -> Rollouts:
    live, shown = services.live, ShownRollouts(process.metrics, process.clock)
    return Rollouts(
        services.store.registry,
        writer,
        Observations(live.cache),
        live.presences,
        process.clock,
        golden=golden,
        leads=leads,
        on_look=shown.looked,
        on_ended=shown.ended,
        hide=shown.hide,
    )


def _make_drains(
    process: Process, services: Services, writer: RegistryWriter, sessions: Sessions, leads: Leads
) -> Drains:
    settings, live = process.settings, services.live
    return Drains(
        services.store.registry,
        writer,
        Holders(live.cache),
        live.leases,
        VersionUses(services.store.turns, sessions.lookup, sessions.pins, services.queue),
        process.clock,
        accept_timeout_s=settings.dispatch.accept_timeout_s,
        min_age_s=settings.control.min_drain_s,
        max_age_s=settings.control.max_drain_s,
        leads=leads,
    )
