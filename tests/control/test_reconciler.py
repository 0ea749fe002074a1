"""The reconciler's loop: it acts as leader and with its term alone, and what it does can be read."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
import structlog
from structlog.testing import capture_logs

from axon.adapters.launch.memory import MemoryReplicas
from axon.adapters.live.memory.live import MemoryLive, open_memory_live
from axon.control.reconciler import Reconciler, Targets
from axon.domain.fleet.demand import Demand
from axon.domain.fleet.reconcile import Pace
from axon.domain.fleet.replica import Group, Launched, LaunchState
from axon.domain.fleet.sight import Sight, Target
from axon.domain.fleet.status import FleetStatus, ReplicaState
from axon.domain.registry.snapshot import Snapshot
from axon.errors import DependencyDown
from axon.registry.fleet_report import FleetReports
from axon.runtime.clock import FakeClock
from tests.control.least_targets import LeastTargets
from tests.domain.fleet.builders import NOBODY, ONE, deployed, present, registry


class Store:
    """Terms and a registry that the test sets."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.found, self.term, self.is_away, self.reads = snapshot, 0, False, 0

    async def take(self) -> int:
        self.term += 1
        return self.term

    async def revision(self) -> int:
        if self.is_away:
            raise DependencyDown("The store does not answer.")
        return self.found.revision

    async def snapshot(self) -> Snapshot:
        self.reads += 1
        return self.found


class Needs:
    """A demand that the test sets."""

    def __init__(self) -> None:
        self.demand: Mapping[Group, Demand] = NOBODY

    async def look(self, snapshot: Snapshot, groups: Sequence[Group]) -> Mapping[Group, Demand]:
        return {group: self.demand[group] for group in groups if group in self.demand}


class Wants:
    """Targets that the test sets; what they saw is kept."""

    def __init__(self) -> None:
        self.count, self.seen = 1, list[Sight]()

    async def __call__(self, sight: Sight) -> Mapping[Group, Target]:
        self.seen.append(sight)
        return {ONE: Target(self.count, "the test says so")}


class World:
    """Two controls over one machine; what is launched announces itself when it is told to."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.live: MemoryLive = open_memory_live(self.clock, retention_s=1.0)
        self.machine = MemoryReplicas(self.clock)
        self.store = Store(registry(deployed()))
        self.needs, self.wants = Needs(), Wants()
        self.reports = FleetReports(self.live.cache)
        self.leads = {"first": True, "second": False}
        self.begun = 0
        """How often targets were made, as at the beginning of a reign that knows nothing."""
        self.first, self.second = self.control("first"), self.control("second")

    def control(self, name: str, make: type[LeastTargets] | None = None, *, kind: str = "memory") -> Reconciler:
        targets: Targets = make(self.clock) if make else self.wants

        def begin() -> Targets:
            self.begun += 1
            return targets

        return Reconciler(
            self.machine.connect(),
            self.store,
            self.store,
            self.live.presences,
            self.live.leases,
            self.needs,
            begin,
            self.reports,
            self.clock,
            name=name,
            kind=kind,
            deposed_s=3.0,
            pace=Pace(hold_s=0.0),
            leads=lambda: self.leads[name],
        )

    async def look(self, control: Reconciler, looks: int = 1) -> None:
        for _ in range(looks):
            await control.look()
            self.clock.advance(1.0)

    async def announce(self) -> None:
        for name in self.machine.launched:
            await self.live.presences.put(present(str(name)), ttl_s=60.0)

    @property
    def names(self) -> list[str]:
        return [str(name) for name, each in self.machine.launched.items() if each.state is LaunchState.RUNNING]

    async def status(self) -> FleetStatus:
        found = await self.reports.last()
        assert found is not None
        return found


@pytest.fixture
def world() -> World:
    structlog.reset_defaults()  # whatever another test has set: nothing is filtered here
    return World()


async def test_what_is_wanted_is_launched_logged_with_its_reason_and_reported(world: World) -> None:
    world.wants.count = 2
    with capture_logs() as logs:
        await world.look(world.first)
    assert world.names == ["small#-0", "small#-1"]
    done = [log for log in logs if log["event"] == "fleet.ensured"]
    assert [log["replica"] for log in done] == world.names
    assert done[0]["reason"] == "2 wanted (the test says so), 0 there"
    await world.announce()
    await world.look(world.first)
    status = await world.status()
    assert (status.leader, status.launcher, status.term) == ("first", "memory", 1)
    assert [(each.name, each.state) for each in status.replicas] == [
        ("small#-0", ReplicaState.READY),
        ("small#-1", ReplicaState.READY),
    ]
    assert [(each.action, each.replica) for each in status.decisions] == [
        ("ensure", "small#-1"),
        ("ensure", "small#-0"),
    ]
    assert (status.groups[0].wanted, status.groups[0].ready) == (2, 2)


async def test_the_decisions_of_the_leader_before_can_still_be_read(world: World) -> None:
    await world.look(world.first)
    world.leads = {"first": False, "second": True}
    world.wants.count = 2
    await world.look(world.second)
    status = await world.status()
    assert status.leader == "second"
    assert [each.replica for each in status.decisions] == ["small#-1", "small#-0"]


async def test_a_leader_begins_without_the_decisions_that_it_cannot_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail_once(reports: FleetReports) -> FleetStatus | None:
        monkeypatch.undo()
        raise DependencyDown("The live service does not answer.")

    await world.look(world.first)
    world.leads = {"first": False, "second": True}
    world.wants.count = 2
    monkeypatch.setattr(FleetReports, "last", fail_once)
    await world.look(world.second)
    assert [each.replica for each in (await world.status()).decisions] == ["small#-1"]


async def test_workers_that_somebody_else_started_by_a_recommendation_are_ready(world: World) -> None:
    control, world.wants.count = world.control("first", kind="external"), 2
    await world.look(control)
    for name in ("pod-x", "pod-y"):
        await world.live.presences.put(present(name), ttl_s=60.0)
    await world.look(control)
    status = await world.status()
    assert (status.groups[0].ready, status.groups[0].starting) == (2, 0)
    assert {each.state for each in status.replicas} == {ReplicaState.READY}
    assert [each.announced for each in world.wants.seen[-1].launched or ()] == ["pod-x", "pod-y"]


async def test_what_is_too_much_is_stopped(world: World) -> None:
    world.wants.count = 2
    await world.look(world.first, looks=2)
    world.wants.count = 1
    await world.look(world.first)
    assert world.names == ["small#-0"]
    assert (await world.status()).decisions[0].action == "stop"


async def test_a_standby_orders_and_reports_nothing(world: World) -> None:
    await world.look(world.second)
    assert not world.machine.launched
    assert await world.reports.last() is None
    assert world.store.term == 0


async def test_every_reign_has_a_term_of_its_own(world: World) -> None:
    await world.look(world.first, looks=3)
    world.leads |= {"first": False, "second": True}
    await world.look(world.first)
    await world.look(world.second)
    assert (await world.status()).term == 2
    world.leads |= {"first": True, "second": False}
    await world.look(world.first)
    assert (await world.status()).term == 3


@pytest.mark.parametrize(
    ("another_led", "lapse_s", "goes_on"), [(False, 2, True), (True, 2, False), (False, 20, False)]
)
async def test_a_lease_that_lapsed_for_a_moment_costs_no_memory_unless_another_led(
    world: World, another_led: bool, lapse_s: int, goes_on: bool
) -> None:
    await world.look(world.first)
    began, world.begun = world.begun, 0
    world.leads["first"] = False
    await world.look(world.first, looks=lapse_s)
    if another_led:
        await world.store.take()
    world.leads["first"] = True
    await world.look(world.first)
    assert (began, world.begun) == (1, 0 if goes_on else 1)
    assert (await world.status()).term == 2 + another_led


async def test_a_leader_that_was_replaced_unawares_changes_nothing_and_stops_acting(world: World) -> None:
    await world.look(world.first)
    world.leads["second"] = True  # live has lost its memory: both think that they lead
    world.wants.count = 2
    await world.look(world.second)
    await world.look(world.first)
    assert world.machine.term == 2
    world.wants.count = 0
    with capture_logs() as logs:
        await world.look(world.first)
    assert world.names == ["small#-0", "small#-1"]
    assert [log["event"] for log in logs if log["log_level"] == "warning"] == ["fleet.deposed"]
    seen = len(world.wants.seen)
    await world.look(world.first)
    assert len(world.wants.seen) == seen
    assert (await world.status()).leader == "second"


async def test_a_leader_that_still_leads_a_while_after_another_ones_term_takes_a_new_one(world: World) -> None:
    await world.look(world.first)
    await world.machine.connect().ensure(ONE.replica(5), next(iter(world.machine.launched.values())).spec, term=7)
    world.store.term = 7
    world.wants.count = 3
    await world.look(world.first)
    assert world.names == ["small#-0", "small#-5"]
    await world.look(world.first, looks=3)
    assert len(world.names) == 3
    assert world.machine.term == 8


async def test_without_a_list_nothing_is_ordered_and_the_report_says_why(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Away:
        async def list(self) -> Sequence[Launched]:
            raise DependencyDown("The launcher does not answer.")

    monkeypatch.setattr(world.first, "_launcher", Away())
    await world.look(world.first)
    assert (await world.status()).problem == "The launcher does not answer."


async def test_without_the_registry_nothing_is_ordered_and_with_it_again_all_goes_on(world: World) -> None:
    world.store.is_away = True
    await world.look(world.first)
    await world.look(world.first)
    world.store.is_away = False
    await world.look(world.first)
    assert world.names == ["small#-0"]


async def test_an_order_that_fails_leaves_the_others_theirs_and_is_reported(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = world.machine.connect()
    ensure = launcher.ensure

    async def failing(name: object, *args: object, **kwargs: object) -> None:
        if name == ONE.replica(0):
            raise DependencyDown("No room.")
        await ensure(name, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(launcher, "ensure", failing)
    monkeypatch.setattr(world.first, "_launcher", launcher)
    world.wants.count = 2
    await world.look(world.first)
    assert world.names == ["small#-1"]
    assert [each.error for each in (await world.status()).decisions] == ["", "No room."]


async def test_the_registry_is_read_again_only_when_it_has_changed(world: World) -> None:
    await world.look(world.first, looks=5)
    assert world.store.reads == 1
    world.store.found = replace(world.store.found, revision=8)
    await world.look(world.first, looks=5)
    assert world.store.reads == 2


async def test_without_an_autoscaler_a_cold_deployment_starts_when_somebody_waits_and_goes_cold_again(
    world: World,
) -> None:
    world.store.found = registry(deployed(min_replicas=0, idle_s=5.0))
    control = world.control("first", LeastTargets)
    await world.look(control, looks=2)
    assert not world.names
    world.needs.demand = {ONE: Demand(waiting=1, unfinished=0)}
    await world.look(control)
    assert world.names == ["small#-0"]
    world.needs.demand = NOBODY
    await world.look(control, looks=4)
    assert world.names == ["small#-0"]
    await world.look(control, looks=4)
    assert not world.names
    assert "idle for 5 s" in (await world.status()).decisions[0].reason


async def test_presences_that_cannot_be_read_stop_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.wants.count = 2
    await world.look(world.first, looks=2)

    async def away() -> str:
        raise DependencyDown("live is away")

    monkeypatch.setattr(world.live.leases, "run_id", away)
    world.wants.count = 0
    await world.look(world.first, looks=3)
    assert len(world.names) == 2
    assert "not known" in (await world.status()).held
