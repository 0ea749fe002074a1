"""Makes the reconciler with the launcher that the settings name, and the command line of a launched worker."""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from axon.bootstrap.control.gauges import ShownFigures
from axon.bootstrap.process import Process
from axon.bootstrap.services import Services
from axon.control.fitting import FittedTargets
from axon.control.fleet_demand import FleetDemand
from axon.control.home import Home
from axon.control.leader import LAUNCHING, Leader
from axon.control.reconciler import Reconciler, Targets
from axon.control.replica_ledger import LedgeredTargets, Payers
from axon.control.scaling import ScaledTargets
from axon.domain.fleet.reconcile import Decided, Ensure, Order, Pace
from axon.domain.fleet.replica import Launched, LaunchState, ReplicaName, ReplicaSpec
from axon.domain.fleet.swapping import SwapRules
from axon.domain.scaling.policy import ScalingPolicy
from axon.errors import Misconfigured
from axon.ports.launcher import Launcher
from axon.registry.cold_starts import ColdStarts
from axon.registry.fleet_report import FleetReports
from axon.registry.last_asked import LastAsked
from axon.runtime.clock import Clock
from axon.runtime.datafolder import read_or_make_secret
from axon.settings import Settings, environment_of
from axon.telemetry.metrics import Metrics

_LIFETIMES = 3
"""Lifetimes of a presence without a stop, after presences may have been lost."""
_LIFETIME_INTERVALS = 3
"""A presence lives for so many intervals between announcements."""
_SLACK_S = 15.0
"""Seconds that a worker may take beyond its drain time, to start and to end its engine."""
_LEASES = 2


async def make_reconciler(
    process: Process, services: Services, stack: AsyncExitStack, *, name: str, leads: Callable[[], bool]
) -> Reconciler | None:
    """The reconciler; None where the settings name no launcher. The stack closes what the launcher opens."""
    settings, clock = process.settings, process.clock
    launcher = await _make_launcher(settings, clock, stack)
    if launcher is None:
        return None
    measured = MeasuredFleet(process.metrics)
    return Reconciler(
        launcher,
        services.store.terms,
        services.store.registry,
        services.live.presences,
        services.live.leases,
        FleetDemand(services.store.turns, services.queue, asked=LastAsked(services.live.cache), clock=clock),
        lambda: _make_targets(settings, services, clock, ShownFigures(process.metrics)),
        FleetReports(services.live.cache),
        clock,
        name=name,
        kind=settings.control.launcher,
        every_s=settings.control.look_s,
        deposed_s=_LEASES * settings.control.lease_s,
        pace=Pace(hold_s=_silence_s(settings)),
        leads=leads,
        on_look=measured.looked,
        on_order=measured.ordered,
    )


def _silence_s(settings: Settings) -> float:
    """Seconds for which workers may be silent before they count as gone: three lifetimes of a presence."""
    return _LIFETIMES * _LIFETIME_INTERVALS * settings.worker.announce_s


def make_election(process: Process, services: Services, *, name: str) -> Leader:
    """The election of the control that launches workers, among those that can: with the launcher ``process``, those of
    the machine that the fleet's processes run on."""
    settings, crowds, clock = process.settings, services.live.crowds, process.clock
    lease_s, may_stand = settings.control.lease_s, None
    if settings.control.launcher == "process":
        machine = read_or_make_secret(settings.data_dir / "machine")
        may_stand = Home(crowds, clock, machine=machine, empty_s=_LEASES * lease_s).is_ours
    return Leader(
        crowds,
        clock,
        lease_s=lease_s,
        on_change=process.metrics.fleet.launches.set,
        crowd=LAUNCHING,
        name=name,
        may_stand=may_stand,
    )


def _make_targets(settings: Settings, services: Services, clock: Clock, shown: ShownFigures) -> Targets:
    """The autoscaler, for one reign of a leader; on a machine with a bound on memory, models are swapped. What
    tenants pay for is written down."""
    config = settings.control
    policy = ScalingPolicy(
        target_wait_s=config.target_wait_s,
        ttft_target_s=config.ttft_target_s,
        itl_target_s=config.itl_target_s,
        refused_s=settings.admission.slo_ttft_default_s,
        look_s=config.scale_s,
        quiet_s=config.quiet_s,
        hold_s=config.hold_s,
    )
    targets: Targets = ScaledTargets(
        policy,
        ColdStarts(services.live.cache),
        clock,
        deaf_s=_silence_s(settings),
        on_decision=shown.decided,
    )
    if config.launcher == "process" and config.memory_bytes:
        rules = SwapRules(max_wait_s=config.swap_wait_s, min_run_s=config.swap_run_s, max_swaps=config.max_swaps)
        targets = FittedTargets(targets, config.memory_bytes, rules, clock)
    store = services.store
    payers = Payers(
        turns=store.turns,
        tenants=store.tenants,
        plans=store.plans,
        usage=store.usage,
        defaults=settings.admission.terms,
    )
    return LedgeredTargets(targets, payers, clock)


def require_no_launcher(settings: Settings) -> None:
    """Raises ``Misconfigured`` where a launcher is set and one process does everything by itself."""
    if settings.control.launcher != "none":
        raise Misconfigured("control.launcher is for `axon control`: `axon serve` runs its models by itself.")


async def _make_launcher(settings: Settings, clock: Clock, stack: AsyncExitStack) -> Launcher | None:
    config = settings.control
    stop_s = settings.lifecycle.notice_s + settings.lifecycle.drain_s + _SLACK_S
    match config.launcher:
        case "process":
            from axon.adapters.launch.process import ProcessLauncher

            environ = environment_of(settings)
            gpus = gpus_of(environ)
            return ProcessLauncher(
                settings.data_dir,
                worker_command,
                clock,
                environ=environ,
                stop_s=stop_s,
                gpus=gpus,
                zone=settings.zone,
            )
        case "kubernetes":
            from axon.adapters.launch.kubernetes import KubernetesLauncher, read_template
            from axon.adapters.launch.kubernetes_api import KubernetesApi

            template = read_template(config.kubernetes_template)
            api = KubernetesApi(config.kubernetes_namespace, server=config.kubernetes_server)
            await stack.enter_async_context(api)
            return KubernetesLauncher(api, template, fleet=settings.namespace, stop_s=stop_s)
        case "external":
            from axon.adapters.launch.external import ExternalLauncher

            return ExternalLauncher(clock)
    return None


def gpus_of(environ: Mapping[str, str], devices: Path = Path("/dev")) -> Sequence[str]:
    """The GPUs of this machine that this process may use, as ``CUDA_VISIBLE_DEVICES`` names them."""
    if (visible := environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return [each.strip() for each in visible.split(",") if each.strip()]
    found = (each.name.removeprefix("nvidia") for each in devices.glob("nvidia[0-9]*"))
    return sorted((each for each in found if each.isdecimal()), key=int)


def worker_command(name: ReplicaName, spec: ReplicaSpec) -> Sequence[str]:
    """The command line of a replica on this machine; everything else is in its environment."""
    return [
        *(sys.executable, "-P", "-m", "axon", "worker"),
        *("--name", str(name), "--deployment", name.group.deployment, "--version", spec.label),
        *("--pool", name.group.pool, "--metrics-port", "0"),
    ]


class MeasuredFleet:
    """Counts what the reconciler does."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def looked(self, decided: Decided, launched: Sequence[Launched]) -> None:
        replicas = self._metrics.fleet.replicas
        replicas.clear()
        for each in decided.groups:
            of = str(each.group)
            for state, number in (
                ("wanted", each.wanted),
                ("starting", each.starting),
                ("ready", each.ready),
                ("draining", each.draining),
            ):
                replicas.labels(of, state).set(number)
        self._metrics.fleet.replicas_waiting.set(sum(each.state is LaunchState.WAITING for each in launched))

    def ordered(self, order: Order, error: str) -> None:
        action = "ensure" if isinstance(order, Ensure) else "stop"
        self._metrics.fleet.orders.labels(action, "failed" if error else "taken").inc()
