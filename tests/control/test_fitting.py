"""Targets that fit: a machine for one model serves three, in turns."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from axon.control.fitting import FittedTargets
from axon.domain.fleet.demand import Demand
from axon.domain.fleet.replica import Group, LaunchState
from axon.domain.fleet.sight import Sight, Target
from axon.domain.fleet.swapping import SwapRules
from axon.domain.registry.deployment import Member, MemberState
from axon.runtime.clock import FakeClock
from tests.domain.fleet.builders import deployed, launched, registry

GB = 1 << 30
NAMES = ("a", "b", "c")
GROUPS = {name: Group(name) for name in NAMES}


class World:
    def __init__(self, room: int = GB) -> None:
        self.clock = FakeClock()
        member = Member(version="small@v1", state=MemberState.READY)
        made = [deployed(name=name, members=(member,), memory_bytes=GB, min_replicas=0, idle_s=60.0) for name in NAMES]
        self.snapshot = registry(*made)
        self.runs: dict[str, LaunchState] = {}
        self.asked: set[str] = set()
        self.fitted = FittedTargets(self._one_each, room, SwapRules(max_wait_s=10.0, min_run_s=5.0), self.clock)

    async def _one_each(self, sight: Sight) -> Mapping[Group, Target]:
        return {group: Target(int(name in self.asked or name in self.runs), "asked") for name, group in GROUPS.items()}

    async def look(self) -> dict[str, int]:
        self.clock.advance(1.0)
        spec = {name: replace(launched(GROUPS[name].replica(0)).spec, memory_bytes=GB) for name in NAMES}
        sight = Sight(
            snapshot=self.snapshot,
            launched=[
                replace(launched(GROUPS[name].replica(0), state), spec=spec[name]) for name, state in self.runs.items()
            ],
            presences=(),
            run_id="run",
            demand={group: Demand(waiting=int(name in self.asked), unfinished=0) for name, group in GROUPS.items()},
        )
        return {group.deployment: target.count for group, target in (await self.fitted(sight)).items()}


async def test_an_idle_model_makes_room_and_its_memory_is_free_when_it_is_gone() -> None:
    world = World()
    world.runs = {"a": LaunchState.RUNNING}
    for _ in range(6):
        await world.look()
    world.asked = {"b"}
    assert await world.look() == {"a": 0, "b": 0, "c": 0}
    world.runs = {"a": LaunchState.STOPPING}
    assert (await world.look())["b"] == 0, "its memory is still in use"
    world.runs = {}
    assert (await world.look())["b"] == 1


async def test_with_room_for_all_nothing_is_changed() -> None:
    world = World(room=3 * GB)
    world.asked = set(NAMES)
    assert await world.look() == dict.fromkeys(NAMES, 1)


async def test_all_have_their_turn() -> None:
    world = World()
    world.asked = set(NAMES)
    ran: list[str] = []
    for _ in range(60):
        counts = await world.look()
        world.runs = {name: LaunchState.RUNNING for name, count in counts.items() if count}
        assert len(world.runs) <= 1
        ran += world.runs
    assert set(ran) == set(NAMES)
    assert sum(one != other for one, other in pairwise(ran)) <= 12, "and keep it for a while"
