"""Demand is what waits and what runs; what cannot be read is unknown, and never nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from axon.adapters.live.memory_cache import MemoryCache
from axon.adapters.queue.memory import MemoryBroker
from axon.control.demand import demand_of, group_of
from axon.domain.fleet.demand import Demand
from axon.domain.fleet.replica import Group
from axon.domain.turn import Turn, opened
from axon.errors import DependencyDown
from axon.registry.last_asked import LastAsked
from axon.runtime.clock import FakeClock
from tests.contracts.builders import make_job
from tests.domain.registry.builders import deployment

SMALL = replace(deployment(), num_lanes=4)
V1, V2, GOLD = Group("small"), Group("small", "b"), Group("small", "", "gold")


class Turns:
    """Unfinished turns in pages of two, as a store gives them."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.is_away = False

    async def unfinished(self, *, limit: int, after: tuple[float, str] | None = None) -> Sequence[Turn]:
        if self.is_away:
            raise DependencyDown("the store is away")
        ordered = sorted(self.turns, key=lambda turn: (turn.opened_at, turn.id))
        return [turn for turn in ordered if after is None or (turn.opened_at, turn.id) > after][:2]


class Scene:
    """A queue, a store and a cache, each of which may be away."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock, self.turns, self.cache = clock, Turns(), MemoryCache(clock)
        self.queue = MemoryBroker(clock=clock).connect()
        self.asked = LastAsked(self.cache)
        self.num_counted = 0
        self.depths, self.queue.depths = self.queue.depths, self._depths  # type: ignore[method-assign]
        self.is_queue_away = False

    async def _depths(self, lanes: Sequence[str]) -> Mapping[str, int]:
        self.num_counted += len(lanes)
        if self.is_queue_away:
            raise DependencyDown("the queue is away")
        return await self.depths(lanes)

    async def wait(self, *lanes: str) -> None:
        await self.queue.declare(lanes)
        for lane in lanes:
            await self.queue.publish(lane, b"job")

    def accept(self, *lanes: str) -> None:
        for lane in lanes:
            number = len(self.turns.turns)
            self.turns.turns.append(opened(make_job(f"turn_{number}", deployment="small", lane=lane)))

    async def look(self) -> Mapping[Group, Demand]:
        return await demand_of(
            [SMALL],
            turns=self.turns,  # type: ignore[arg-type]
            queue=self.queue,
            asked=self.asked,
            now=self.clock.now(),
        )


@pytest.fixture
async def scene(clock: FakeClock) -> Scene:
    made = Scene(clock)
    await made.queue.open()
    return made


async def test_jobs_in_lanes_and_unfinished_turns_are_counted_by_version_and_pool(scene: Scene) -> None:
    await scene.asked.put("small", scene.clock.now())
    await scene.wait("small/00", "small/priority/03", "small:b/flex/01", "small#gold/02")
    scene.accept("small/00", "small/00", "small/01", "small:b/00", "small#gold/02")
    found = await scene.look()
    counts = {group: (demand.waiting, demand.unfinished) for group, demand in found.items()}
    assert counts == {V1: (2, 3), V2: (1, 1), GOLD: (1, 1)}
    assert found[V1].last_asked == scene.clock.now()
    assert str(found[V1]) == "2 jobs wait, 3 turns are unfinished"


async def test_a_group_that_nobody_asks_is_known_to_have_no_demand(scene: Scene) -> None:
    found = await scene.look()
    assert all(demand.is_known and not demand for demand in found.values())
    assert found.keys() == {V1, V2}


async def test_what_cannot_be_read_is_unknown_and_not_nothing(scene: Scene) -> None:
    scene.turns.is_away = True
    demand = (await scene.look())[V1]
    assert (demand.waiting, demand.unfinished, demand.is_known) == (0, None, False)
    await scene.wait("small/00")
    demand = (await scene.look())[V1]
    assert demand.is_known, "something waits, whatever the store would say"
    assert demand
    scene.turns.is_away, scene.is_queue_away = False, True
    demand = (await scene.look())[V1]
    assert (demand.waiting, demand.unfinished, demand.is_known) == (None, 0, False)
    assert str(demand) == "? jobs wait, 0 turns are unfinished"


async def test_lanes_of_a_deployment_that_was_not_asked_for_long_are_not_counted(scene: Scene) -> None:
    await scene.asked.put("small", scene.clock.now())
    scene.clock.advance(601.0)
    demand = (await scene.look())[V1]
    assert (demand.waiting, demand.is_known, scene.num_counted) == (0, True, 0)
    assert demand.idle_s(scene.clock.now()) == 601.0


async def test_the_idle_time_begins_anew_when_live_has_lost_its_memory(scene: Scene) -> None:
    await scene.asked.put("small", scene.clock.now() - 500.0)
    assert (await scene.look())[V1].idle_s(scene.clock.now()) == 500.0
    await scene.cache.drop("asked/small")
    assert (await scene.look())[V1].idle_s(scene.clock.now()) == 0.0
    scene.clock.advance(20.0)
    assert (await scene.look())[V1].idle_s(scene.clock.now()) == 20.0
    assert Demand(waiting=0, unfinished=0).idle_s(0.0) is None
    assert Demand(waiting=1, unfinished=0, last_asked=0.0).idle_s(90.0) == 0.0


def test_a_job_belongs_to_the_group_of_its_lane() -> None:
    assert group_of(make_job(deployment="small", lane="small:b#gold/priority/00")) == Group("small", "b", "gold")
    assert group_of(make_job(deployment="small", lane="golden/1")) is None
