"""Handing over: who goes, when there is room elsewhere; and that a job which goes is not disturbed by it."""

import asyncio
from unittest.mock import patch

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.presence import Presence
from axon.ports.queue import Delivery
from axon.worker.config import WorkerConfig
from axon.worker.peers import handover
from axon.worker.peers.handover import Held
from tests.contracts.builders import make_presence
from tests.worker.world import STEP_S, World

helds = st.lists(
    st.builds(
        Held,
        job_id=st.uuids().map(str),
        slots=st.integers(1, 4),
        num_left=st.integers(1, 1000),
        waited_s=st.floats(0, 10),
    ),
    max_size=12,
    unique_by=lambda each: each.job_id,
)
presences = st.lists(
    st.builds(
        make_presence,
        incarnation=st.sampled_from(["me", "you", "they"]),
        free_slots=st.integers(0, 8),
        draining=st.booleans(),
        version=st.sampled_from(["v1", "v2"]),
    ),
    max_size=5,
)


@given(presences)
def test_room_is_what_others_of_the_same_version_have_who_stay(said: list[Presence]) -> None:
    room = handover.room_elsewhere(said, me="me", version="v1")
    able = [each for each in said if each.incarnation != "me" and not each.draining and each.deployment.version == "v1"]
    assert room == sum(each.load.free_slots for each in able)
    assert handover.room_elsewhere(said, me="me", version="") >= room


@given(helds, st.integers(0, 12))
def test_nobody_is_given_more_than_there_is_room_for_and_no_room_is_left_to_who_would_fit(
    held: list[Held], room: int
) -> None:
    chosen = handover.leaving(held, room=room)
    slots = {each.job_id: each.slots for each in held}
    left = room - sum(slots[job_id] for job_id in chosen)
    assert left >= 0
    assert len(set(chosen)) == len(chosen)
    assert all(each.slots > left for each in held if each.job_id not in chosen)


@given(helds, st.integers(0, 12))
def test_of_those_that_take_one_place_the_longest_go_first(held: list[Held], room: int) -> None:
    single = [each for each in held if each.slots == 1]
    chosen = set(handover.leaving(single, room=room))
    gone = [each.num_left for each in single if each.job_id in chosen]
    stay = [each.num_left for each in single if each.job_id not in chosen]
    assert not gone or not stay or min(gone) >= max(stay)


@given(helds, st.integers(0, 12), st.floats(0.1, 10))
def test_only_who_has_waited_too_long_is_crowded_out(held: list[Held], room: int, patience_s: float) -> None:
    chosen = handover.crowded(held, room=room, patience_s=patience_s)
    waited = {each.job_id: each.waited_s for each in held}
    assert all(waited[job_id] >= patience_s for job_id in chosen)
    assert chosen == sorted(chosen, key=lambda job_id: -waited[job_id])


@pytest.mark.parametrize("num_jobs", [1, 4])
def test_a_draining_workers_long_jobs_go_on_elsewhere_without_a_token_lost_or_repeated(num_jobs: int) -> None:
    world = World()

    async def story() -> None:
        first = await world.start()
        jobs = [await world.ask(seed=seed, max_tokens=400) for seed in range(num_jobs)]
        await world.until(lambda: len(first.hands.running) == num_jobs)
        second = await world.start()
        await asyncio.sleep(3.0)
        began = world.loop.monotonic()
        before = {job.id: await world.num_tokens(job) for job in jobs}
        assert await first.drain(60.0)
        assert world.loop.monotonic() - began < 5.0 < 400 * STEP_S
        await world.until(lambda: len(second.hands.running) == num_jobs)
        for job in jobs:
            assert len(second.hands.running[job.id].tokens) >= before[job.id]
            assert second.hands.running[job.id].epoch > 1
        await world.until(lambda: len(world.kept.turns) == num_jobs)
        for job in jobs:
            world.check(job)
            seqs = [seq for chunk in await world.chunks(job) for seq in range(chunk.first, chunk.last + 1)]
            assert seqs == [*range(1, 401)]

    world.run(story)


def test_a_worker_that_ends_logs_what_it_held_what_it_handed_over_and_that_it_stopped() -> None:
    world = World()

    async def story() -> None:
        first = await world.start(name="first")
        for seed in range(3):
            await world.ask(seed=seed, max_tokens=400)
        await world.until(lambda: len(first.hands.running) == 3)
        await world.start(name="second")
        await asyncio.sleep(3.0)
        with structlog.testing.capture_logs() as lines:
            assert await first.drain(60.0)
            await world.stop(first)
        assert [line for line in lines if line["event"].startswith("worker.")] == [
            {"event": "worker.draining", "worker": "first", "turns": 3, "log_level": "info"},
            {"event": "worker.drained", "worker": "first", "handed_over": 3, "left": 0, "log_level": "info"},
            {"event": "worker.stopped", "worker": "first", "log_level": "info"},
        ]

    world.run(story)


def test_a_short_job_of_a_draining_worker_ends_where_it_is() -> None:
    world = World()

    async def story() -> None:
        first = await world.start()
        job = await world.ask(seed=1, max_tokens=20)
        await world.until(lambda: first.hands.running)
        second = await world.start()
        assert await first.drain(60.0)
        world.check(job)
        assert not second.hands.running

    world.run(story)


def test_a_draining_worker_takes_nothing_and_returns_what_it_watches() -> None:
    world = World()

    async def story() -> None:
        first = await world.start()
        job = await world.ask(seed=1, max_tokens=400)
        await world.until(lambda: first.hands.running)
        world.publish(job)  # a copy, which is parked
        await world.until(lambda: world.broker.depth(job.lane) == 0)
        draining = asyncio.get_running_loop().create_task(first.drain(5.0))
        await world.until(lambda: world.broker.depth(job.lane) == 1)
        other = await world.ask(seed=2)
        assert not await draining
        assert world.broker.depth(job.lane) == 2
        assert other.id not in world.kept.turns

    world.run(story)


def test_with_nobody_else_there_jobs_run_until_the_grace_time_and_are_then_released() -> None:
    world = World()

    async def story() -> None:
        first = await world.start()
        job = await world.ask(seed=1, max_tokens=400)
        await world.until(lambda: first.hands.running)
        began = world.loop.monotonic()
        assert not await first.drain(10.0)
        assert world.loop.monotonic() - began >= 10.0
        assert await world.num_tokens(job) > 150
        await world.stop(first)
        await world.start()
        await world.until(lambda: job.id in world.kept.turns)
        world.check(job)

    world.run(story)


def test_who_comes_up_while_another_drains_is_handed_its_jobs() -> None:
    world = World()

    async def story() -> None:
        first = await world.start()
        job = await world.ask(seed=1, max_tokens=800)
        await world.until(lambda: first.hands.running)
        draining = asyncio.get_running_loop().create_task(first.drain(60.0))
        await asyncio.sleep(5.0)
        assert first.hands.running
        second = await world.start()
        assert await draining
        await world.until(lambda: job.id in second.hands.running)
        await world.until(lambda: job.id in world.kept.turns)
        world.check(job)

    world.run(story)


def test_a_job_without_blocks_goes_to_a_worker_that_has_room() -> None:
    world = World(config=WorkerConfig(crowded_s=3.0))

    async def story() -> None:
        first = await world.start()
        jobs = [await world.ask(seed=seed, max_tokens=400) for seed in (1, 2)]
        await world.until(lambda: len(first.hands.running) == 2)
        world.starved.add((first.identity.incarnation, 2))
        await asyncio.sleep(4.0)
        assert len(first.hands.running) == 2  # nobody has room
        assert first.load.free_slots == 0
        second = await world.start()
        await world.until(lambda: jobs[1].id in second.hands.running)
        assert jobs[0].id in first.hands.running
        await world.until(lambda: len(world.kept.turns) == 2)
        for job in jobs:
            world.check(job)

    world.run(story)


def test_a_job_that_waits_for_its_place_keeps_nobody_elses_from_the_engine() -> None:
    world = World()

    async def story() -> None:
        worker = await world.start()
        waiting = await world.ask(seed=1, max_tokens=400)
        world.starved.add(("", 1))
        await world.until(lambda: waiting.id in worker.hands.running)
        await asyncio.sleep(5.0)
        assert worker.load.free_slots == 0
        others = [await world.ask(seed=seed, tenant="other") for seed in (2, 3, 4)]
        await world.until(lambda: len(world.kept.turns) == 3)
        for job in others:
            world.check(job)
        world.starved.clear()
        await world.until(lambda: waiting.id in world.kept.turns)

    world.run(story)


def test_room_that_was_given_away_is_not_given_again_before_its_owner_has_spoken() -> None:
    world = World()

    async def story() -> None:
        first = await world.start()
        held = [await world.ask(seed=seed, max_tokens=400) for seed in range(4)]
        await world.until(lambda: len(first.hands.running) == 4)
        second = await world.start()
        for seed in (5, 6, 7):
            await world.ask(seed=seed, max_tokens=400)
        await world.until(lambda: len(second.hands.running) == 3)
        await asyncio.sleep(1.5)
        ask, seen = world.live.presences.all, (0.0, list[Presence]())

        async def ask_late(deployment: str) -> list[Presence]:
            nonlocal seen
            if world.loop.monotonic() - seen[0] > 0.3:
                seen = world.loop.monotonic(), list(await ask(deployment))
            return seen[1]

        with patch.object(world.live.presences, "all", ask_late):
            draining = asyncio.get_running_loop().create_task(first.drain(60.0))
            await world.until(lambda: len(second.hands.running) == 4)
            for _ in range(100):
                assert len(first.hands.running) == 3
                assert sum(world.broker.depth(job.lane) for job in held) == 0
                await asyncio.sleep(0.01)
            assert await draining

    world.run(story)


def test_a_slow_release_does_not_cost_a_delivery_its_way_back() -> None:
    world = World()

    async def story() -> None:
        first = await world.start()
        job = await world.ask(seed=1, max_tokens=400)
        await world.until(lambda: first.hands.running)
        second = await world.start()
        await asyncio.sleep(1.5)
        release, give_back = world.live.log.release, first._passing._queue.give_back

        async def release_slowly(job_id: str, epoch: int, *, crashes: int) -> None:
            await release(job_id, epoch, crashes=crashes)
            await asyncio.sleep(4.0)

        async def give_back_slowly(delivery: Delivery) -> None:
            await asyncio.sleep(2.0)
            await give_back(delivery)

        with (
            patch.object(world.live.log, "release", release_slowly),
            patch.object(first._passing._queue, "give_back", give_back_slowly),
        ):
            assert await first.drain(60.0)
            await world.until(lambda: job.id in second.hands.running)

    world.run(story)


def test_a_job_that_was_parked_while_it_was_released_is_not_given_back_too() -> None:
    world = World()

    async def story() -> None:
        first = await world.start()
        job = await world.ask(seed=1, max_tokens=400)
        await world.until(lambda: first.hands.running)
        await world.start()
        await asyncio.sleep(1.5)
        release, returned = world.live.log.release, list[Delivery]()

        async def release_and_park(job_id: str, epoch: int, *, crashes: int) -> None:
            first._emitter._park(first.hands.running[job_id])
            await release(job_id, epoch, crashes=crashes)

        async def note(delivery: Delivery) -> None:
            returned.append(delivery)

        with (
            patch.object(world.live.log, "release", release_and_park),
            patch.object(first._passing._queue, "give_back", note),
        ):
            await first._passing.hand_over(handover.leaving)
        assert returned == []
        await world.until(lambda: job.id in world.kept.turns)
        world.check(job)

    world.run(story)


def test_a_worker_that_cannot_release_its_jobs_in_time_still_lets_its_lease_go() -> None:
    world = World()

    async def story() -> None:
        first = await world.start()
        await world.ask(seed=1, max_tokens=400)
        await world.until(lambda: first.hands.running)
        dropped = list[str]()

        async def hang(job_id: str, epoch: int, *, crashes: int) -> None:
            await asyncio.sleep(1000.0)

        async def drop(owner: str) -> None:
            dropped.append(owner)

        with patch.object(world.live.log, "release", hang), patch.object(world.live.leases, "drop", drop):
            await world.stop(first)
        assert dropped == [first.identity.incarnation]

    world.run(story)
