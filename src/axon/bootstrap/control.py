"""Assembles control, for ``axon control`` and for the control inside ``axon serve``."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from axon.bootstrap.launching import make_election, make_reconciler, require_no_launcher
from axon.bootstrap.process import Part, Process, Up, started
from axon.bootstrap.registry import make_follower, make_writer, removed_in
from axon.bootstrap.services import Services, open_persister, open_services, require_shared
from axon.bootstrap.turn_parts import make_admission, make_dispatch, make_ending
from axon.bootstrap.version_text import text_loader
from axon.control.drains import Drains
from axon.control.golden import GoldenChecks
from axon.control.golden_turns import GoldenTurns
from axon.control.gone import GoneVersions
from axon.control.leader import Leader
from axon.control.retention import Retention
from axon.control.rollouts import Rollouts
from axon.control.sweeper import Sweeper
from axon.control.version_uses import VersionUses
from axon.ownership.liveness import Liveness
from axon.registry.holders import Holders
from axon.registry.observations import Observations
from axon.sessions.prompt import Threads
from axon.sessions.sessions import make_sessions
from axon.settings import Settings
from axon.tenants.revocations import Revocations


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
    with started(settings) as process:
        async with AsyncExitStack() as stack:
            setting = "--metrics-port"
            url = stack.enter_context(process.probed(config.metrics_host, config.metrics_port, setting, lambda: True))
            services = await open_services(settings, process.clock, stack)
            control = await open_control(process, services, stack)

            async def begun() -> None:
                process.lifecycle.ready = True
                on_ready(Up(role="control", facts=(("Name", control.leader.name), ("Metrics", f"{url}/metrics"))))

            return await process.run(control.parts, started=begun, drain=control.leave)


async def open_control(
    process: Process, services: Services, stack: AsyncExitStack, *, stands_by: bool = True
) -> Control:
    """Assembles control. With ``stands_by`` it works only while it is the elected leader; without, always.

    ``axon serve`` does not stand by: if such a process dies as leader together with its worker, recovery of the
    worker's turns elsewhere need not wait for a new election.
    """
    settings, clock = process.settings, process.clock
    admission = make_admission(settings, services, clock)
    leader = Leader(services.live.crowds, clock, lease_s=settings.control.lease_s, on_change=process.metrics.leads.set)
    stack.push_async_callback(leader.leave)
    leads = leader.leads if stands_by else lambda: True
    registry = make_follower(services.store, services.live, clock)
    await registry.open()
    names = frozenset(each.model_name for each in settings.each_model())

    def is_ours(deployment: str) -> bool:
        return deployment in names or deployment in registry.snapshot.deployments

    dispatch = make_dispatch(settings, services, is_ours=is_ours)
    sweeper = Sweeper(
        turns=services.store.turns,
        live=services.live,
        queue=services.queue,
        dispatch=dispatch,
        ending=make_ending(settings, services, admission, clock),
        liveness=Liveness(services.live.leases, clock, lease_s=settings.worker.lease_s, wakeups=services.live.wakeups),
        readmit=admission.readmit,
        renew=admission.renew,
        renew_s=settings.admission.ticket_s / 4,
        leads=leads,
        gone=GoneVersions(services.live.presences, clock, is_removed=removed_in(registry)),
        config=settings.control,
        retention_s=settings.sessions.retention_s,
        clock=clock,
    )
    retention = Retention(
        services.store.turns,
        services.store.conversations,
        services.store.tombstones,
        idle_ttl_s=settings.sessions.idle_ttl_s,
        leads=leads,
        clock=clock,
    )
    sessions = make_sessions(services.live, services.store, services.journal, clock, settings.sessions)
    threads = Threads()
    stack.callback(threads.close)
    turns = GoldenTurns(lambda: registry.snapshot, text_loader(settings, threads), dispatch, sessions.lookup, clock)
    golden = GoldenChecks(turns.ask)
    writer = make_writer(services.store, clock, services.live)
    rollouts = Rollouts(
        services.store.registry,
        writer,
        Observations(services.live.cache),
        services.live.presences,
        clock,
        golden=golden,
        leads=leads,
    )
    revocations = Revocations(services.live.cache, services.store.keys, clock, leads=leads)
    persister = await open_persister(settings, services, clock, stack)
    standing = (leader.run,) if stands_by else ()
    drains = Drains(
        services.store.registry,
        writer,
        Holders(services.live.cache),
        services.live.leases,
        VersionUses(services.store.turns, sessions.lookup, sessions.pins, services.queue),
        clock,
        accept_timeout_s=settings.dispatch.accept_timeout_s,
        min_age_s=settings.control.min_drain_s,
        max_age_s=settings.control.max_drain_s,
        leads=leads,
    )
    if not stands_by:
        require_no_launcher(settings)
    election = make_election(process, services, name=leader.name)
    stack.push_async_callback(election.leave)
    reconciler = await make_reconciler(process, services, stack, name=leader.name, leads=election.leads)
    led = (sweeper.run, retention.run, revocations.run, rollouts.run, golden.run, drains.run)
    launched = (election.run, reconciler.run) if reconciler else ()
    parts = (*standing, registry.run, *led, *launched, *((persister.run,) if persister else ()))
    return Control(leader=leader, election=election, sweeper=sweeper, parts=parts)
