"""The demand for each group: what is counted, and what is not known."""

from collections.abc import Mapping, Sequence

import pytest

from axon.adapters.live.memory.live import open_memory_live
from axon.control.fleet_demand import FleetDemand
from axon.domain.fleet.demand import Demand
from axon.domain.fleet.replica import Group
from axon.domain.registry.deployment import MemberState
from axon.domain.tenants.tenant import Tier
from axon.domain.turn import Unfinished
from axon.errors import DependencyDown
from axon.registry.last_asked import LastAsked
from axon.runtime.clock import FakeClock
from tests.domain.fleet.builders import ONE, TWO, deployed, registry

SNAPSHOT = registry(deployed(states=(MemberState.READY, MemberState.READY), num_lanes=2))


class Services:
    """A store and a queue that the test sets."""

    def __init__(self) -> None:
        self.unfinished: list[Unfinished] | None = []
        self.depth_of: dict[str, int] | None = {}
        self.asked: list[str] = []

    async def count_unfinished(self) -> Sequence[Unfinished]:
        if self.unfinished is None:
            raise DependencyDown("away")
        return self.unfinished

    async def depths(self, lanes: Sequence[str]) -> Mapping[str, int]:
        if self.depth_of is None:
            raise DependencyDown("away")
        self.asked += lanes
        return {lane: self.depth_of.get(lane, 0) for lane in lanes}


@pytest.fixture
def services() -> Services:
    return Services()


def demand_of(services: Services, **changes: int) -> FleetDemand:
    clock = FakeClock()
    asked = LastAsked(open_memory_live(clock, retention_s=60.0).cache)
    return FleetDemand(services, services, asked=asked, clock=clock, **changes)  # type: ignore[arg-type]


def counted(found: Mapping[Group, Demand]) -> dict[Group, tuple[int | None, int | None]]:
    """Waiting jobs and unfinished turns."""
    return {group: (demand.waiting, demand.unfinished) for group, demand in found.items()}


async def test_jobs_in_a_groups_lanes_and_turns_of_its_version_count(services: Services) -> None:
    services.depth_of = {"small/priority/01": 2, "small/00": 1, "small:b/flex/00": 4}
    services.unfinished = [Unfinished(deployment="small", version="small@v2", count=3)]
    found = await demand_of(services).look(SNAPSHOT, [ONE, TWO])
    assert counted(found) == {ONE: (3, 0), TWO: (4, 3)}
    assert found[ONE].waiting_by_tier == {Tier.PRIORITY: 2, Tier.DEFAULT: 1}
    assert found[TWO].waiting_by_tier == {Tier.FLEX: 4}


async def test_turns_of_a_version_count_for_its_deployments_own_pool(services: Services) -> None:
    gold = Group("small", "", "gold")
    services.depth_of = {"small#gold/00": 1}
    services.unfinished = [Unfinished(deployment="small", version="small@v1", count=3)]
    found = await demand_of(services).look(SNAPSHOT, [ONE, gold])
    assert counted(found) == {ONE: (0, 3), gold: (1, 0)}


async def test_a_group_that_the_registry_does_not_know_is_left_out(services: Services) -> None:
    assert await demand_of(services).look(SNAPSHOT, [Group("gone")]) == {}


async def test_a_service_that_is_away_makes_the_demand_unknown_unless_there_is_some(services: Services) -> None:
    services.depth_of = None
    services.unfinished = [Unfinished(deployment="small", version="small@v2", count=3)]
    found = await demand_of(services).look(SNAPSHOT, [ONE, TWO])
    assert (found[ONE].is_known, found[TWO].is_known, bool(found[TWO])) == (False, True, True)
    services.depth_of, services.unfinished = {"small/00": 1}, None
    found = await demand_of(services).look(SNAPSHOT, [ONE, TWO])
    assert (found[ONE].is_known, found[TWO].is_known) == (True, False)


async def test_when_there_are_more_lanes_than_a_look_counts_groups_take_turns(services: Services) -> None:
    demand = demand_of(services, max_lanes=7)
    assert not (await demand.look(SNAPSHOT, [ONE, TWO]))[TWO].is_known
    services.depth_of = {"small/00": 5, "small:b/00": 6}
    found = await demand.look(SNAPSHOT, [ONE, TWO])
    assert (found[ONE].waiting, found[TWO].waiting) == (0, 6)
    assert (await demand.look(SNAPSHOT, [ONE, TWO]))[ONE].waiting == 5
    assert len(services.asked) == 18


async def test_a_group_with_more_lanes_than_a_look_counts_is_counted_all_the_same(services: Services) -> None:
    assert (await demand_of(services, max_lanes=1).look(SNAPSHOT, [ONE]))[ONE].is_known


async def test_the_last_request_is_told_where_it_is_known(services: Services) -> None:
    clock = FakeClock()
    asked = LastAsked(open_memory_live(clock, retention_s=60.0).cache)
    await asked.put("small", 77.0)
    demand = FleetDemand(services, services, asked=asked, clock=clock)  # type: ignore[arg-type]
    assert (await demand.look(SNAPSHOT, [ONE]))[ONE].last_asked == 77.0
