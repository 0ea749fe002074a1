"""Two versions in one fleet: each job runs where its version is, and is ended only when nobody has that any more."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from axon.domain.fairness.lane import with_letter
from axon.domain.log.chunk import Chunk
from axon.domain.presence import Presence
from axon.worker.peers.versions import is_served
from tests.contracts.builders import claim_epoch, make_presence
from tests.worker.world import World

presences = st.lists(
    st.builds(
        make_presence,
        incarnation=st.sampled_from(["me", "you", "they"]),
        draining=st.booleans(),
        version=st.sampled_from(["v1", "v2"]),
    ),
    max_size=4,
)


@given(presences)
def test_a_version_is_served_by_others_who_stay(said: list[Presence]) -> None:
    able = [each for each in said if each.incarnation != "me" and not each.draining and each.deployment.version == "v2"]
    assert is_served(said, "v2", me="me") == bool(able)


def test_with_two_versions_at_work_the_jobs_of_both_are_answered() -> None:
    world = World(slots=2)

    async def story() -> None:
        workers = {version: await world.start(version=version) for version in ("v1", "v2")}
        await asyncio.sleep(1.0)
        jobs = [await world.ask(seed=seed, version=f"v{1 + seed % 2}") for seed in range(12)]
        while len(world.kept.turns) < len(jobs):
            for version, worker in workers.items():
                assert {running.job.version for running in worker.hands.running.values()} <= {version}
            await asyncio.sleep(0.01)
        for job in jobs:
            world.check(job)

    world.run(story)


def test_a_job_whose_version_nobody_has_is_kept_until_somebody_ends_it() -> None:
    world = World()

    async def story() -> None:
        await world.start(version="v1")
        await asyncio.sleep(1.0)
        gone, ours = await world.ask(seed=1, version="v0"), await world.ask(seed=2)
        await asyncio.sleep(60.0)
        world.check(ours)
        assert gone.id not in world.kept.turns  # only control knows whether its version comes back
        epoch = await claim_epoch(world.live.log, gone.id, "sweeper", over=0)
        await world.live.log.append([(gone.id, Chunk(first=1, epoch=epoch, terminal="failed", code="version_gone"))])
        await world.until(lambda: gone.id in world.kept.turns)
        turn = world.kept.turns[gone.id]
        assert (turn.state, turn.code) == ("failed", "version_gone")
        await world.until(lambda: not world.num_unacked)
        assert world.broker.depth(gone.lane) == 0

    world.run(story)


def test_a_job_of_a_mark_that_means_the_workers_version_runs_there() -> None:
    world = World()

    async def story() -> None:
        worker = await world.start(version="small@v1")
        worker.identity.marks = frozenset({"mark-1"})
        job = await world.ask(seed=1, version="mark-1")
        await world.until(lambda: job.id in world.kept.turns)
        world.check(job)

    world.run(story)


LETTERS = {"v1": "", "v2": "b"}


def test_a_job_in_another_versions_lane_goes_to_its_own_and_is_acked_after_that() -> None:
    world = World()

    async def story() -> None:
        first = await world.start(version="v1", letters=LETTERS.get)
        job = await world.ask(seed=1, version="v2")
        lane = with_letter(job.lane, job.deployment, "b")
        await world.until(lambda: world.broker.depth(lane) == 1)
        assert (world.num_unacked, world.broker.depth(job.lane)) == (0, 0)
        assert not first.hands.running
        await world.start(version="v2", letter="b", letters=LETTERS.get)
        await world.until(lambda: job.id in world.kept.turns)
        world.check(job)
        assert world.broker.depth(lane) == 0

    world.run(story)


def test_a_job_whose_republish_is_not_confirmed_is_not_acked() -> None:
    world = World()

    async def story() -> None:
        world.broker.max_waiting = 1
        lane = "small:b/00"
        world.broker.declare([lane])
        world.broker.publish(lane, b"in the way")
        await world.start(version="v1", letters=LETTERS.get)
        job = await world.ask(seed=1, version="v2")
        await asyncio.sleep(5.0)
        assert world.num_unacked == 1
        blocker = world.broker.take([lane])
        assert blocker is not None
        await world.until(lambda: world.broker.depth(lane) == 1)
        await world.until(lambda: not world.num_unacked)
        assert job.id not in world.kept.turns

    world.run(story)


def test_a_worker_takes_the_lanes_of_its_version_alone() -> None:
    world = World()

    async def story() -> None:
        await world.start(version="v2", letter="b", letters=LETTERS.get)
        other = await world.ask(seed=1, version="v1")
        ours = await world.ask(seed=2, version="v2", lane="small:b/01")
        await world.until(lambda: ours.id in world.kept.turns)
        await asyncio.sleep(10.0)
        assert world.broker.depth(other.lane) == 1

    world.run(story)


def test_a_version_that_is_away_for_a_moment_loses_no_job() -> None:
    world = World()

    async def story() -> None:
        await world.start(version="v1")
        jobs = []
        for away in (1, 2):
            jobs.append(await world.ask(seed=away, version="v2"))
            await asyncio.sleep(6.0)
            worker = await world.start(version="v2")
            await world.until(lambda: len(world.kept.turns) == len(jobs))
            await world.stop(worker)
            await asyncio.sleep(6.0)
        for job in jobs:
            world.check(job)

    world.run(story)
