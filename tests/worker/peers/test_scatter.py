"""An engine's death in a fleet: its jobs go on elsewhere at once, and their crashes go with them."""

import pytest

from axon.domain.job import Job
from axon.worker.worker import Worker
from tests.worker.world import World

POISON = 99
RESTART_S = 30.0
"""How long an engine takes to start again in these tests: nobody may wait for it."""


async def fleet(world: World, num_jobs: int, num_others: int = 1) -> tuple[Worker, list[Worker], list[Job]]:
    """A worker in the middle of these jobs, and others that are idle."""
    first = await world.start(name="first")
    jobs = [await world.ask(seed=seed, max_tokens=60) for seed in range(1, num_jobs + 1)]
    await world.until(lambda: len(first.hands.running) == num_jobs)
    await world.until(lambda: all(each.tokens for each in first.hands.running.values()))
    others = [await world.start(name=f"other{number}") for number in range(num_others)]
    await world.known(1 + num_others)
    world.start_s = RESTART_S
    return first, others, jobs


@pytest.mark.parametrize("num_others", [1, 3])
def test_the_jobs_of_an_engine_that_dies_go_on_elsewhere_before_the_next_one_is_up(num_others: int) -> None:
    world = World(slots=8)

    async def story() -> None:
        first, others, jobs = await fleet(world, 6, num_others)
        died_at = world.loop.monotonic()
        world.engine_of(first).kill()
        await world.until(lambda: sum(len(other.hands.running) for other in others) == len(jobs))
        assert world.loop.monotonic() - died_at < 0.2
        assert all(other.hands.trials.crashes(id) == 1 for other in others for id in other.hands.running)
        await world.until(lambda: len(world.kept.turns) == len(jobs))
        assert world.loop.monotonic() - died_at < RESTART_S
        for job in jobs:
            world.check(job)

    world.run(story)


def test_jobs_for_which_nobody_has_room_wait_for_the_next_engine_here() -> None:
    world = World(slots=4)

    async def story() -> None:
        first, [other], jobs = await fleet(world, 4)
        crowd = [await world.ask(seed=seed, max_tokens=2000) for seed in (11, 12, 13)]
        await world.until(lambda: len(other.hands.running) == len(crowd))
        await world.settled()
        world.engine_of(first).kill()
        await world.until(lambda: len(other.hands.running) == 4)
        await world.settled()
        assert len(first.hands.running) == len(jobs) - 1
        await world.until(lambda: all(job.id in world.kept.turns for job in jobs))
        for job in jobs:
            world.check(job)

    world.run(story)


def test_a_worker_without_an_engine_takes_nothing_and_announces_no_room() -> None:
    world = World(slots=8)

    async def story() -> None:
        first, [other], _ = await fleet(world, 1)
        world.engine_of(first).kill()
        await world.until(lambda: not first.hands.has_engine)
        assert first.load.free_slots == 0
        more = [await world.ask(seed=seed) for seed in range(11, 15)]
        await world.until(lambda: all(job.id in world.kept.turns for job in more))
        assert not first.hands.has_engine
        assert len(other.hands.running) <= 1

    world.run(story)


@pytest.mark.parametrize("num_others", [0, 1, 2])
def test_a_poison_in_a_fleet_is_ended_after_three_crashes_and_everybody_else_is_answered(num_others: int) -> None:
    world = World(slots=32)
    world.fates[POISON] = "crash"

    async def story() -> None:
        first, others, jobs = await fleet(world, 16, num_others)
        world.start_s = 1.0
        for other in others:
            other.hands.is_closed = True  # so that the poison comes to the first one
        poison = await world.ask(seed=POISON)
        await world.until(lambda: not first.hands.has_engine)
        for other in others:
            other.hands.is_closed = False
        await world.until(lambda: len(world.kept.turns) == len(jobs) + 1)
        assert world.kept.turns[poison.id].code == "worker_crash"
        assert world.num_engines - len(others) - 1 <= 3
        for job in jobs:
            world.check(job)

    world.run(story)


def test_a_suspect_that_is_handed_over_is_tried_alone_by_the_next_worker() -> None:
    world = World(slots=8)

    async def story() -> None:
        first, [other], [job] = await fleet(world, 1)
        [running] = first.hands.running.values()
        for _ in range(2):
            first.hands.trials.crashed({job.id: 1})
        bystander = await world.ask(seed=7, max_tokens=500)
        await world.until(lambda: other.hands.running)
        assert await first._passing._give_up(running)
        await world.until(lambda: job.id in other.hands.running)
        assert other.hands.trials.on_trial == (job.id,)
        assert all(choice.sequence_id is None for choice in other.hands.running[bystander.id].choices)
        await world.until(lambda: job.id in world.kept.turns)
        world.check(job)

    world.run(story)


def test_a_trial_that_lasts_sends_the_others_to_workers_with_room() -> None:
    world = World(slots=8)

    async def story() -> None:
        first, [other], jobs = await fleet(world, 3)
        world.starved.add((first.identity.incarnation, jobs[0].seed))  # it gains nothing, and crashes nothing
        for _ in range(2):
            first.hands.trials.crashed({jobs[0].id: 1})
        first.hands.resume(first.hands.running[jobs[0].id])
        await world.until(lambda: len(other.hands.running) == 2)
        assert list(first.hands.running) == [jobs[0].id]
        await world.until(lambda: all(job.id in world.kept.turns for job in jobs[1:]))
        for job in jobs[1:]:
            world.check(job)

    world.run(story)
