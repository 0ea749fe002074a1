"""The autoscaler on what control sees: more workers where work waits, fewer when it is gone, none by guessing."""

from dataclasses import replace
from typing import Any

import pytest

from axon.adapters.live.memory.live import open_memory_live
from axon.control.scaling import ScaledTargets
from axon.domain.fleet.cold_start import ColdStart
from axon.domain.fleet.demand import Demand
from axon.domain.fleet.replica import Group
from axon.domain.fleet.sight import Sight, Target
from axon.domain.presence import Load, Presence, Service
from axon.domain.registry.scaling import Scaling, Window
from axon.domain.scaling.policy import ScalingPolicy
from axon.domain.tenants.tenant import Tier
from axon.registry.cold_starts import ColdStarts
from axon.runtime.clock import FakeClock
from tests.domain.fleet.builders import ONE, deployed, launched, present, registry

POLICY = ScalingPolicy(look_s=1.0, quiet_s=20.0, hold_s=5.0)
SPEED = 100.0
"""Tokens per second of a worker."""


class World:
    """Workers of one deployment that serve 100 tokens a second each, and requests of 20 tokens."""

    def __init__(self, **changes: Any) -> None:
        self.clock = FakeClock()
        live = open_memory_live(self.clock, retention_s=60.0)
        self.cold_starts = ColdStarts(live.cache)
        self.targets = ScaledTargets(POLICY, self.cold_starts, self.clock)
        bounds: dict[str, Any] = {"min_replicas": 1, "max_replicas": 8, **changes}
        self.snapshot = registry(deployed(**bounds))
        self.served: list[float] = [0.0]
        self.waiting = 0.0

    async def second(self, requests: float) -> Target:
        """A second passes in which so many requests come; returns the target, which is met at once."""
        self.clock.advance(1.0)
        work = self.waiting + requests * 20.0
        done = min(work, SPEED * len(self.served))
        self.waiting = work - done
        self.served = [each + done / len(self.served) for each in self.served]
        target = (await self.targets(self.sight(busy=done / (SPEED * len(self.served)))))[ONE]
        self.served = [*self.served, *([0.0] * (target.count - len(self.served)))][: target.count]
        return target

    def sight(self, busy: float = 0.0) -> Sight:
        jobs = round(self.waiting / 20)
        return Sight(
            snapshot=self.snapshot,
            launched=tuple(launched(ONE.replica(index)) for index in range(len(self.served))),
            presences=tuple(self.worker(index, busy) for index in range(len(self.served))),
            run_id="run",
            demand={ONE: Demand(waiting=jobs, unfinished=jobs + round(busy * 4))},
        )

    def worker(self, index: int, busy: float) -> Presence:
        tokens = int(self.served[index])
        service = Service(jobs=tokens // 20, prompt_tokens=tokens // 2, answer_tokens=tokens // 2)
        load = Load(slots=4, free_slots=4 - round(4 * busy), num_tokens=0, tokens_per_s=SPEED, service=service)
        return replace(present(str(ONE.replica(index))), incarnation=f"run-{index}", load=load)


async def test_workers_follow_the_load_up_and_down() -> None:
    world = World()
    await world.cold_starts.put("small@v1", ColdStart(seconds=1.0, at=0.0))
    for _ in range(30):
        target = await world.second(2)
    assert target.count == 1
    for _ in range(40):
        target = await world.second(20)
    assert 5 <= target.count <= 8
    assert target.reason
    for _ in range(250):
        target = await world.second(0.5)
    assert target.count == 1


async def test_a_new_leader_that_only_recommends_keeps_the_workers_that_tell_of_themselves() -> None:
    world = World()
    world.served = [0.0] * 5
    blind = replace(world.sight(), launched=(), demand={})
    assert (await world.targets(blind))[ONE].count == 5


async def test_no_more_than_the_deployment_allows() -> None:
    world = World(max_replicas=3)
    counts = [(await world.second(200)).count for _ in range(30)]
    assert max(counts) == 3


async def test_no_more_than_the_deployment_may_cost_in_an_hour() -> None:
    world = World(scaling=Scaling(price_per_h=2.0, cost_per_h=9.0))
    counts = [(await world.second(200)).count for _ in range(30)]
    assert max(counts) == 4


async def test_a_minimum_by_the_clock_is_kept_without_any_load() -> None:
    world = World(scaling=Scaling(floors=(Window(replicas=3),)))
    counts = [(await world.second(0)).count for _ in range(40)]
    assert set(counts) == {3}


async def test_a_deployment_that_aims_at_fuller_workers_has_fewer_of_them() -> None:
    counts = []
    for aim in (0.4, 0.9):
        world = World(max_replicas=20, scaling=Scaling(utilisation=aim))
        await world.cold_starts.put("small@v1", ColdStart(seconds=1.0, at=0.0))
        for _ in range(60):
            target = await world.second(10)
        counts.append(target.count)
    assert counts[0] > counts[1]


@pytest.mark.parametrize("missing", ["presences", "demand"])
async def test_what_cannot_be_seen_changes_nothing(missing: str) -> None:
    world = World()
    for _ in range(30):
        target = await world.second(20)
    sight = world.sight()
    blind = replace(sight, presences=None) if missing == "presences" else replace(sight, demand={})
    seen = (await world.targets(blind))[ONE]
    assert seen.count <= target.count


async def test_presences_that_were_lost_and_come_back_are_no_crowd() -> None:
    world = World(max_replicas=50)
    for _ in range(60):
        target = await world.second(10)
    for _ in range(3):
        world.clock.advance(1.0)
        flushed = replace(world.sight(busy=0.5), presences=())
        held = (await world.targets(flushed))[ONE]
        assert held.count == target.count
    for _ in range(5):
        after = await world.second(10)
    assert after.count <= target.count + 1


async def test_another_leader_does_not_take_what_was_served_before_it_for_a_crowd() -> None:
    world = World(max_replicas=50)
    for _ in range(60):
        target = await world.second(10)
    world.targets = ScaledTargets(POLICY, world.cold_starts, world.clock)
    for _ in range(10):
        after = await world.second(10)
    assert after.count <= target.count + 1


@pytest.mark.parametrize("missing", ["presences", "demand"])
async def test_another_leader_keeps_what_runs_until_it_can_see(missing: str) -> None:
    world = World()
    for _ in range(60):
        target = await world.second(20)
    world.targets = ScaledTargets(POLICY, world.cold_starts, world.clock)
    sight = world.sight()
    blind = replace(sight, presences=None) if missing == "presences" else replace(sight, demand={})
    assert (await world.targets(blind))[ONE].count == target.count


async def test_jobs_of_the_flex_tier_wait_longer_before_workers_become_more() -> None:
    counts = []
    for tier in (Tier.DEFAULT, Tier.FLEX):
        world = World(max_replicas=50)
        await world.cold_starts.put("small@v1", ColdStart(seconds=1.0, at=0.0))
        waits = Demand(waiting=10, tiers={tier: 10}, unfinished=10)
        for _ in range(2):
            world.clock.advance(2.0)
            target = (await world.targets(replace(world.sight(), demand={ONE: waits})))[ONE]
        counts.append(target.count)
    assert counts[0] > counts[1]


async def test_what_steps_cost_suffices_for_workers_that_were_never_full() -> None:
    world = World(max_replicas=50)
    told = Service(taken_jobs=10, taken_prompt=100, expected_tokens=100.0, prefill_per_s=1000.0, decode_per_s=100.0)
    load = Load(slots=4, free_slots=2, num_tokens=0, service=told)
    worker = replace(world.worker(0, 0.5), load=load)
    for step in range(1, 60):
        world.clock.advance(1.0)
        more = replace(told, taken_jobs=10 + 10 * step, taken_prompt=100.0 + 100 * step)
        more = replace(more, expected_tokens=100.0 + 400 * step)
        seen = replace(worker, load=replace(load, service=more))
        target = (await world.targets(replace(world.sight(), presences=[seen])))[ONE]
    assert 5 <= target.count <= 7
    assert "busy replicas" in target.reason


async def test_a_group_that_nobody_asks_stays_cold() -> None:
    world = World(min_replicas=0, idle_s=60)
    world.served = []
    world.clock.advance(1.0)
    sight = replace(world.sight(), demand={ONE: Demand(waiting=0, unfinished=0)})
    assert (await world.targets(sight))[ONE].count == 0
    asked = replace(sight, demand={ONE: Demand(waiting=3, unfinished=3)})
    assert (await world.targets(asked))[ONE].count >= 1


async def test_other_deployments_workers_are_not_counted() -> None:
    world = World()
    other = replace(present("x"), deployment=replace(present("x").deployment, name="other"))
    world.clock.advance(1.0)
    sight = world.sight()
    targets = await world.targets(replace(sight, presences=(*(sight.presences or ()), other)))
    assert set(targets) == {ONE}
    assert Group("other") not in targets
