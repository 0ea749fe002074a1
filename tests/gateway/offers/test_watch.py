"""What a gateway reads of deployments that have no worker, and notes of those that are asked."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from axon.adapters.live.memory.cache import MemoryCache
from axon.admission.line import Line
from axon.admission.place import Place
from axon.domain.fleet.cold_start import ColdStart
from axon.domain.fleet.reconcile import GroupState
from axon.domain.fleet.replica import Group
from axon.domain.fleet.status import FleetStatus
from axon.domain.presence import Load
from axon.errors import DependencyDown
from axon.gateway.offers.registered import RegisteredOffer
from axon.gateway.offers.wait import State, Wait
from axon.gateway.offers.watch import Watch
from axon.registry.cold_starts import ColdStarts
from axon.registry.fleet_report import FleetReports
from axon.registry.last_asked import LastAsked
from axon.registry.load_problems import LoadProblems
from axon.runtime.clock import FakeClock
from axon.telemetry.metrics import Metrics
from tests.contracts.builders import make_job
from tests.domain.registry.builders import deployment, snapshot
from tests.gateway.offers.builders import FakeView, make_offers, said

QUEUED = make_job("turn_1", deployment="small", version="small@v1", lane="small/00", queued=2)


class World:
    """A gateway with one cold deployment, whose line and cache a test sets."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock, self.cache, self.metrics = clock, MemoryCache(clock), Metrics()
        self.lines: dict[Place, Line] = {}
        self.asked: list[Place] = []
        self.is_away = False
        self.reports = FleetReports(self.cache)
        notes = ColdStarts(self.cache), LastAsked(self.cache), self.reports, LoadProblems(self.cache)
        watch = Watch(self.read, *notes, clock, self.metrics)
        view = FakeView(snapshot(replace(deployment(), min_replicas=0, idle_s=60.0)))
        self.offers = make_offers(clock, view=view, watch=watch)

    async def read(self, places: Sequence[Place]) -> Sequence[Line]:
        self.asked = list(places)
        if self.is_away:
            raise DependencyDown("live is away")
        return [self.lines.get(place, Line()) for place in places]

    @property
    def small(self) -> RegisteredOffer:
        offer = self.offers.find("small", lambda name: True).offer
        assert isinstance(offer, RegisteredOffer)
        return offer


@pytest.fixture
def world(clock: FakeClock) -> World:
    return World(clock)


async def test_turns_of_other_gateways_that_wait_make_a_cold_deployment_load(world: World) -> None:
    await world.offers.look()
    assert world.small.listed().state is State.COLD
    world.lines[Place("small")] = Line(waiting=3)
    await world.offers.look()
    assert world.small.listed().state is State.LOADING
    assert world.metrics.turns.waiting.labels("small")._value.get() == 3
    world.is_away = True
    await world.offers.look()
    assert world.small.listed().state is State.LOADING, "what cannot be read stays"


async def test_a_version_that_could_not_be_loaded_is_listed_as_failed_until_it_is(world: World) -> None:
    problems = LoadProblems(world.cache)
    await problems.put("small", "small@v1", "There is no /models/small on this machine.", ttl_s=60.0)
    await world.offers.look()
    assert world.small.listed().state is State.FAILED
    await problems.drop("small", "small@v1")
    await world.offers.look()
    assert world.small.listed().state is State.COLD


async def test_a_reader_learns_its_place_and_the_measured_time_of_a_start(world: World) -> None:
    await world.offers.look()
    await ColdStarts(world.cache).put("small@v1", ColdStart(seconds=12.0, at=0.0))
    world.clock.advance(1.0)
    await world.offers.look()
    world.offers.accepted(QUEUED, Line(waiting=2, work=10.0))
    assert world.offers.wait_of(QUEUED) == Wait(state=State.LOADING, position=2, expected_s=12.0)
    first = replace(QUEUED, queued=1)
    assert world.offers.wait_of(first, is_new=True) == Wait(state=State.COLD, position=1, expected_s=12.0)
    assert world.offers.wait_of(replace(QUEUED, queued=0)) is None
    assert world.offers.wait_of(replace(QUEUED, deployment="other", lane="other/00")) is None


async def test_the_line_is_read_until_it_is_empty_and_not_while_workers_run(world: World) -> None:
    world.offers.accepted(QUEUED, Line(waiting=2))
    world.small.fleet.learn([said("a", "small@v1"), said("b", "small@v2")])
    world.lines[Place("small")] = Line(waiting=1)
    offers = [world.small]
    watch = world.offers._watch
    assert watch is not None
    await watch.look(offers)
    assert world.offers.wait_of(QUEUED) == Wait(state=State.READY, position=1, expected_s=0.0)
    world.lines.clear()
    await watch.look(offers)
    assert world.offers.wait_of(QUEUED) is None
    await watch.look(offers)
    assert world.asked == [], "there is nothing to watch"


async def test_a_deployment_that_was_asked_is_noted_once_with_its_last_time(world: World, clock: FakeClock) -> None:
    asked_at = clock.now()
    world.offers.accepted(QUEUED, Line())
    clock.advance(0.5)
    world.offers.accepted(QUEUED, Line())
    world.offers.accepted(replace(QUEUED, deployment="unknown"), Line())
    await world.offers.look()
    clock.advance(60.0)
    assert await LastAsked(world.cache).of("small", now=clock.now()) == asked_at + 0.5
    assert await world.cache.get("asked/unknown") is None


async def test_a_version_beside_the_stable_one_has_its_own_measured_start(world: World) -> None:
    await ColdStarts(world.cache).put("small@v2", ColdStart(seconds=7.0, at=0.0))
    world.small.fleet.learn([said("a", "small@v1")])
    watch = world.offers._watch
    assert watch is not None
    await watch.look([world.small])
    job = replace(QUEUED, version="small@v2", lane="small:b/00", queued=1)
    world.offers.accepted(job, Line(waiting=1))
    assert world.offers.wait_of(job) == Wait(state=State.LOADING, position=1, expected_s=7.0)


async def _report(world: World, *, more: int, launcher: str = "process", ready: int = 1) -> None:
    state = GroupState(group=Group("small"), wanted=2, reason="3 jobs wait", ready=ready, more=more)
    at = world.clock.now()
    await world.reports.put(FleetStatus(at=at, leader="control-1", term=1, launcher=launcher, groups=(state,)))


def _busy(world: World, *, free_slots: int = 0) -> None:
    load = Load(slots=4, free_slots=free_slots, num_tokens=9, tokens_per_s=100.0)
    world.small.fleet.learn([replace(said("a", "small@v1"), load=load)])


async def _look(world: World) -> None:
    assert world.offers._watch is not None
    await world.offers._watch.look([world.small])


async def test_turns_of_a_full_pool_may_wait_for_the_workers_that_control_can_start(world: World) -> None:
    patience_s = world.small.deployment.cold_patience_s
    assert world.offers.await_more("small", "") == 0, "nobody has reported"
    _busy(world)
    await _report(world, more=2)
    await _look(world)
    assert world.offers.await_more("small", "") == patience_s
    assert (world.offers.await_more("small", "gold"), world.offers.await_more("unknown", "")) == (0, 0)
    world.clock.advance(8.0)
    assert world.offers.await_more("small", "") == patience_s - 8.0, "the first that waits begins the time"
    await _report(world, more=1, ready=2)
    await _look(world)
    assert world.offers.await_more("small", "") == patience_s, "a worker came"
    await _report(world, more=0, ready=3)
    await _look(world)
    assert world.offers.await_more("small", "") == 0, "the fleet is at its most"


async def test_a_report_that_is_old_or_only_recommends_makes_nobody_wait(world: World) -> None:
    _busy(world)
    await _report(world, more=2)
    await _look(world)
    world.clock.advance(10.5)
    await _look(world)
    assert world.offers.await_more("small", "") == 0, "its leader is gone"
    await _report(world, more=2, launcher="external")
    await _look(world)
    assert world.offers.await_more("small", "") == 0


async def test_a_pool_with_free_slots_forgets_that_workers_were_awaited(world: World) -> None:
    _busy(world)
    await _report(world, more=2)
    await _look(world)
    world.offers.await_more("small", "")
    world.clock.advance(5.0)
    _busy(world, free_slots=1)
    await _look(world)
    assert world.offers.await_more("small", "") == 0, "it refuses nobody: there is nothing to wait for"
    _busy(world)
    await _report(world, more=2)
    await _look(world)
    assert world.offers.await_more("small", "") == world.small.deployment.cold_patience_s
