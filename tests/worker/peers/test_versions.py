"""Two versions in one fleet: each job runs where its version is, and is ended only when nobody has that any more."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from axon.domain.presence import Presence
from axon.worker.peers.versions import is_served
from tests.contracts.builders import make_presence
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


def test_a_job_whose_version_nobody_has_is_ended_after_a_while() -> None:
    world = World()

    async def story() -> None:
        await world.start(version="v1")
        await asyncio.sleep(1.0)
        gone, ours = await world.ask(seed=1, version="v0"), await world.ask(seed=2)
        await asyncio.sleep(5.0)
        world.check(ours)
        assert gone.id not in world.kept.turns
        await asyncio.sleep(10.0)
        turn = world.kept.turns[gone.id]
        assert (turn.state, turn.code) == ("failed", "version_gone")

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
