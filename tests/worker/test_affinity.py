"""Follow-up turns come to the worker that holds their beginning, and neither fairness nor an answer suffers from it."""

import asyncio
from functools import partial
from unittest.mock import patch

from axon.dispatch.affinity import Residences
from axon.domain.fairness.lane import own_lane
from axon.domain.job import Job
from axon.ports.queue import Delivery
from axon.worker.worker import Worker
from tests.worker.world import DEPLOYMENT, World

OWN = own_lane(DEPLOYMENT, "w1")


async def start(world: World, name: str) -> Worker:
    return await world.start(name=name, residences=Residences(world.live.cache, ttl_s=600.0))


def test_follow_ups_run_where_the_turn_before_them_ran() -> None:
    world = World(slots=1)

    async def story() -> None:
        workers = {await start(world, "w1"), await start(world, "w2")}
        await world.ask(seed=100, max_tokens=40, session="another")
        await world.until(lambda: any(worker.hands.running for worker in workers))
        [home] = [worker for worker in workers if not worker.hands.running]  # where there is room for the first turn
        for turn in range(1, 6):
            job = await world.ask(seed=turn, prompt_ids=tuple(range(10 * turn)), dispatched=True)
            await world.until(partial(has_begun, workers, job))
            assert job.id in home.hands.running
            await world.until(partial(has_ended, world, job))
            world.check(job)
            await asyncio.sleep(3.0)

    world.run(story)


def has_begun(workers: set[Worker], job: Job) -> bool:
    return any(job.id in worker.hands.running for worker in workers)


def has_ended(world: World, job: Job) -> bool:
    return job.id in world.kept.turns


def test_a_follow_up_whose_worker_died_is_answered_by_another() -> None:
    world = World()

    async def story() -> None:
        first = await start(world, "w1")
        job = await world.ask(seed=1, prompt_ids=tuple(range(10)), dispatched=True)
        await world.until(lambda: job.id in world.kept.turns)
        second = await start(world, "w2")
        await asyncio.sleep(1.5)
        world.kill(first)
        assert await world.live.presences.all(DEPLOYMENT)  # its presence has not lapsed
        job = await world.ask(seed=2, prompt_ids=tuple(range(20)), dispatched=True)
        assert world.broker.depth(OWN) == 1
        await world.until(lambda: job.id in second.hands.running)
        await world.until(lambda: job.id in world.kept.turns)
        world.check(job)

    world.run(story)


def test_the_own_lane_comes_first_and_never_twice_in_a_row_while_others_wait() -> None:
    world = World(slots=1)

    async def story() -> None:
        started = []
        intake = (await start(world, "w1"))._intake
        claim = intake._claim

        async def noted(delivery: Delivery) -> None:
            started.append("own" if delivery.own else "lane")
            await claim(delivery)

        with patch.object(intake, "_claim", noted):
            for number in range(4):
                await world.ask(seed=number, max_tokens=2, lane=f"{DEPLOYMENT}/0{number % 2}")
            for number in range(10, 13):
                await world.ask(seed=number, max_tokens=2, own=OWN)
            await world.until(lambda: len(world.kept.turns) == 7)
        assert started == ["own", "lane", "own", "lane", "own", "lane", "lane"]

    world.run(story)


def test_a_turn_that_did_not_end_well_draws_no_follow_up_after_it() -> None:
    world = World()

    async def story() -> None:
        worker = await start(world, "w1")
        job = await world.ask(seed=1, max_tokens=400, prompt_ids=tuple(range(10)))
        await world.until(lambda: job.id in worker.hands.running)
        await world.live.log.flag(job.id, cancel=True)
        await world.until(lambda: job.id in world.kept.turns)
        await asyncio.sleep(1.0)
        assert await Residences(world.live.cache, ttl_s=600.0).find(job) is None

    world.run(story)
