"""Fair shares of slots: who is short is taken at once, tokens are charged fleet-wide, pools are apart."""

import asyncio

from axon.domain.fairness.lane import lane_names, lane_of, pool_name
from axon.worker.config import WorkerConfig
from tests.worker.world import DEPLOYMENT, NUM_LANES, World


def test_a_light_tenant_is_taken_by_a_worker_that_a_flood_has_filled() -> None:
    world = World(slots=2)

    async def story() -> None:
        worker = await world.start()
        for number in range(8):
            await world.ask(seed=number, max_tokens=200, tenant="heavy", lane=f"{DEPLOYMENT}/00")
        await world.until(lambda: len(worker.hands.running) == 2)
        job = await world.ask(seed=10, tenant="light", lane=f"{DEPLOYMENT}/01")
        await asyncio.sleep(0.1)
        assert job.id in worker.hands.running
        another = await world.ask(seed=11, tenant="light", lane=f"{DEPLOYMENT}/01")
        await asyncio.sleep(0.1)
        assert another.id not in worker.hands.running  # it has its part
        assert sum(running.job.tenant == "heavy" for running in worker.hands.running.values()) == 2
        await world.until(lambda: len(world.kept.turns) == 10)

    world.run(story)


def test_what_was_taken_beyond_the_slots_and_finds_no_place_goes_on_elsewhere_soon() -> None:
    world = World(slots=2, config=WorkerConfig(crowded_s=1000.0))

    async def story() -> None:
        worker = await world.start(name="w1")
        for number in range(2):
            await world.ask(seed=number, max_tokens=400, tenant="heavy", lane=f"{DEPLOYMENT}/00")
        await world.until(lambda: len(worker.hands.running) == 2)
        world.starved.add((worker.identity.incarnation, 10))
        job = await world.ask(seed=10, tenant="light", lane=f"{DEPLOYMENT}/01")
        await world.until(lambda: job.id in worker.hands.running)
        second = await world.start(name="w2")
        await world.until(lambda: job.id in second.hands.running)
        await world.until(lambda: job.id in world.kept.turns)
        world.check(job)

    world.run(story)


def test_what_a_tenant_is_served_is_charged_to_it_by_its_weight_wherever_it_runs() -> None:
    world = World()

    async def story() -> None:
        for name in ("w1", "w2"):
            await world.start(name=name)
        for number in range(8):
            await world.ask(seed=number, max_tokens=10, tenant="a", weight=2.0, prompt_ids=tuple(range(20)))
        await world.until(lambda: len(world.kept.turns) == 8)
        await asyncio.sleep(1.0)
        counters = await world.live.shares.counters(pool_name(DEPLOYMENT), ["a"])
        assert counters["a"] == 8 * (20 + 2 * 10) / 2

    world.run(story)


def test_a_worker_of_a_pool_takes_its_jobs_and_no_others() -> None:
    world = World(config=WorkerConfig(pool="gold"))
    world.broker.declare(lane_names(DEPLOYMENT, NUM_LANES, "gold"))

    async def story() -> None:
        worker = await world.start()
        shared = await world.ask(seed=1, lane=lane_of("a", DEPLOYMENT, NUM_LANES))
        gold = await world.ask(seed=2, lane=lane_of("a", DEPLOYMENT, NUM_LANES, pool="gold"))
        await world.until(lambda: gold.id in world.kept.turns)
        await asyncio.sleep(10.0)
        assert shared.id not in world.kept.turns
        assert not worker.hands.running

    world.run(story)
