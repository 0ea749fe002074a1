"""A worker's lifeline: with the queue's word it tells of a death at once, and by itself it tells nothing."""

import asyncio
from collections.abc import Sequence
from unittest.mock import patch

from axon.dispatch.dispatch import work_channel
from axon.dispatch.hint import encode_hint, hint_of
from axon.domain.job import Job
from axon.worker.worker import Worker
from tests.worker.world import DEPLOYMENT, World


async def running(world: World) -> tuple[Worker, Job]:
    """A worker in the middle of a job."""
    worker = await world.start()
    job = await world.ask(seed=1, max_tokens=200)
    await world.until(lambda: worker.hands.running and worker.hands.running[job.id].tokens)
    return worker, job


async def hint(world: World, job: Job) -> None:
    await world.live.wakeups.notify(work_channel(DEPLOYMENT), encode_hint(hint_of(job)))


def test_the_job_of_a_worker_that_is_killed_is_taken_over_before_its_lease_lapses() -> None:
    world = World()

    async def story() -> None:
        first, job = await running(world)
        second = await world.start()
        world.kill(first)
        await asyncio.sleep(0.1)
        await hint(world, job)
        await world.until(lambda: job.id in second.hands.running)
        assert await world.live.leases.alive([first.identity.incarnation])
        await world.until(lambda: job.id in world.kept.turns)
        world.check(job)

    world.run(story)


def test_a_job_that_is_delivered_again_is_parked_while_its_owner_is_heard() -> None:
    world = World()

    async def story() -> None:
        first, job = await running(world)
        [epoch] = [each.epoch for each in first.hands.running.values()]
        second = await world.start()
        first.hands.is_closed = True  # so that it does not take its own job again
        world.lose_connection(first)  # as when the broker restarts
        await hint(world, job)
        await world.until(lambda: second._parked.owners)
        await world.until(lambda: job.id in world.kept.turns)
        assert not second.hands.running
        view = await world.live.log.read(job.id, after=0)
        assert view is not None
        assert view.epoch == epoch
        world.check(job)

    world.run(story)


async def nobody(channels: Sequence[str]) -> list[int]:
    return [0] * len(channels)


def test_a_lifeline_that_is_cut_costs_nothing_by_itself() -> None:
    world = World()

    async def story() -> None:
        first, job = await running(world)
        second = await world.start()
        first.hands.is_closed = True
        with patch.object(world.live.wakeups, "counts", nobody):
            world.publish(job)  # a copy: the queue has delivered nothing again
            await hint(world, job)
            await world.until(lambda: second._parked.owners)
            await world.settled()
        assert job.id in first.hands.running
        assert not second.hands.running

    world.run(story)
