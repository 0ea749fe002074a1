"""Two releases in one fleet: what a worker does not understand is left to others, never acked away or half answered."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import msgspec

from axon.dispatch.dispatch import work_channel
from axon.dispatch.hint import Hint, encode_hint
from axon.domain import job_body
from axon.domain.job import Job
from axon.domain.turn import Turn, TurnState, ended, opened
from axon.worker import claims
from tests.contracts.builders import make_chunk, make_job
from tests.worker.world import DEPLOYMENT, World

LATER = msgspec.msgpack.encode({"v": 2, "id": "turn_later", "words": "of a later release"})


@contextmanager
def supporting(*features: str) -> Iterator[None]:
    """Workers of a release that knows these features."""
    with patch.object(claims, "read_job", lambda body: job_body.read_job(body, frozenset(features))):
        yield


async def put(world: World, body: bytes, lane: str = "small/00") -> None:
    world.broker.publish(lane, body)
    await world.live.wakeups.notify(work_channel(DEPLOYMENT), encode_hint(Hint(lane=lane)))


def test_a_job_of_a_later_format_stays_on_the_queue_and_holds_nobody_up() -> None:
    world = World(slots=1)

    async def story() -> None:
        await world.start()
        await put(world, LATER)
        jobs = [await world.ask(seed=seed) for seed in range(6)]
        await world.until(lambda: len(world.kept.turns) == len(jobs))
        for job in jobs:
            world.check(job)
        await asyncio.sleep(60.0)
        assert world.num_unacked + world.broker.depth("small/00") == 1
        assert len(world.kept.turns) == len(jobs)

    world.run(story)


def test_a_job_that_needs_more_reaches_the_worker_that_supports_it() -> None:
    world = World()

    async def story() -> None:
        await world.start()
        job = await world.ask(seed=1, needs=("images",))
        await asyncio.sleep(20.0)
        assert job.id not in world.kept.turns
        assert world.num_unacked + world.broker.depth(job.lane) == 1
        with supporting("images"):
            await world.until(lambda: job.id in world.kept.turns)
        world.check(job)

    world.run(story)


def test_a_job_that_is_left_alone_is_offered_again_and_again() -> None:
    """Not kept for ever by a worker that cannot run it."""
    world = World()

    async def story() -> None:
        await world.start()
        await put(world, LATER)
        num_seen = 0
        for _ in range(600):
            await asyncio.sleep(0.1)
            num_seen += world.broker.depth("small/00")
        assert num_seen > 60

    world.run(story)


def test_one_that_has_ended_is_acked() -> None:
    world = World()

    async def story() -> None:
        world.kept.turns["turn_later"] = over(make_job("turn_later"))
        await world.start()
        await put(world, LATER)
        await world.until(lambda: not world.broker.depth("small/00") and not world.num_unacked)

    world.run(story)


def test_bytes_that_no_release_wrote_are_dropped() -> None:
    world = World()

    async def story() -> None:
        await world.start()
        await put(world, b"nonsense")
        job = await world.ask(seed=1)
        await world.until(lambda: job.id in world.kept.turns)
        assert world.broker.depth("small/00") == 0

    world.run(story)


def over(job: Job) -> Turn:
    return ended(opened(job), (make_chunk(1, terminal=TurnState.EXPIRED),), at=1.0)
