"""Jobs with LoRA adapters at a worker: fetched once, beside other work, by digest; held while a job needs them; failed
where that is impossible."""

import asyncio
from dataclasses import replace

import pytest

from axon.worker.config import WorkerConfig
from tests.worker.adapter_fetches import LAW, SQL, Fetches, adapter, ask, ended, fails
from tests.worker.world import World


def test_a_job_waits_for_its_adapter_and_others_do_not() -> None:
    world, fetch = World(), Fetches()

    async def story() -> None:
        worker = await world.start(fetch_adapter=fetch)
        jobs = [await ask(world, seed, SQL) for seed in (1, 2)]
        plain = await world.ask(seed=3, max_tokens=2)
        await world.until(lambda: plain.id in world.kept.turns)
        assert not any(job.id in world.kept.turns for job in jobs)
        await world.until(lambda: worker.identity and world.engine_of(worker)._sequences)
        adds = [add for add, _ in world.engine_of(worker)._sequences.values()]
        assert {(add.adapter, add.adapter_folder) for add in adds} == {(SQL.digest, f"/cache/{SQL.digest}")}
        await ended(world, *jobs)
        for job in (*jobs, plain):
            world.check(job)
        assert fetch.asked == [SQL.digest]

    world.run(story)


def test_another_worker_takes_over_with_the_same_digest() -> None:
    world, first_fetch, second_fetch = World(), Fetches(), Fetches()

    async def story() -> None:
        first = await world.start(fetch_adapter=first_fetch)
        job = await ask(world, 1, LAW, max_tokens=60)
        while await world.num_tokens(job) < 5:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.01)
        await world.start(fetch_adapter=second_fetch)
        world.kill(first)
        await ended(world, job)
        world.check(job)
        assert first_fetch.asked == second_fetch.asked == [LAW.digest]

    world.run(story)


@pytest.mark.parametrize("source", ["gone", "broken"])
def test_a_job_whose_adapter_cannot_be_fetched_fails_and_the_next_one_tries_again(source: str) -> None:
    world, fetch = World(), Fetches()

    async def story() -> None:
        await world.start(fetch_adapter=fetch)
        for seed in (1, 2):
            await fails(world, await ask(world, seed, replace(SQL, source=source)))
        assert fetch.asked == [SQL.digest] * 2
        plain = await world.ask(seed=3)
        await ended(world, plain)
        world.check(plain)

    world.run(story)


def test_files_are_held_while_a_job_in_hand_names_them_and_let_go_of_after_that() -> None:
    world, fetch = World(), Fetches()

    async def story() -> None:
        worker = await world.start(fetch_adapter=fetch)
        long, short = await ask(world, 1, SQL, max_tokens=100), await ask(world, 2, SQL, max_tokens=2)
        other = await ask(world, 3, LAW, max_tokens=2)
        await ended(world, short, other)
        await world.until(lambda: fetch.held == {SQL.digest})
        await ended(world, long)
        await world.until(lambda: not fetch.held)
        again = await ask(world, 4, SQL)
        await ended(world, again)
        assert fetch.asked.count(SQL.digest) == 2, "the next job has them looked at again"
        lasting = await ask(world, 5, SQL, max_tokens=10_000)
        await world.until(lambda: fetch.held)
        await world.stop(worker)
        assert not fetch.held
        assert lasting.id not in world.kept.turns

    world.run(story)


def test_files_that_nobody_needs_give_way_and_a_job_waits_while_all_are_needed() -> None:
    world, fetch = World(slots=8), Fetches(room=2)

    async def story() -> None:
        await world.start(fetch_adapter=fetch)
        for number in range(5):
            await ended(world, job := await ask(world, number, adapter(number)))
            world.check(job)
        jobs = [await ask(world, 10 + number, adapter(number), max_tokens=40) for number in range(6)]
        await ended(world, *jobs)
        for job in jobs:
            world.check(job)

    world.run(story)


def test_a_job_that_finds_no_room_fails_in_time() -> None:
    world, fetch = World(config=WorkerConfig(adapter_timeout_s=20.0)), Fetches(room=1)

    async def story() -> None:
        await world.start(fetch_adapter=fetch)
        lasting = await ask(world, 1, SQL, max_tokens=900)
        await world.until(lambda: fetch.held)
        began = world.loop.now()
        await fails(world, await ask(world, 2, LAW))
        assert 20.0 <= world.loop.now() - began < 25.0
        assert len(fetch.asked) < 5, "it does not ask again and again"
        assert lasting.id not in world.kept.turns
        fetch.room = 0
        await ended(world, lasting)
        await world.until(lambda: not fetch.held)
        began = world.loop.now()
        await fails(world, await ask(world, 3, LAW))
        assert world.loop.now() - began < 5.0, "there is nobody to wait for"

    world.run(story)


def test_a_paused_job_keeps_its_files() -> None:
    world, fetch = World(), Fetches()

    async def story() -> None:
        worker = await world.start(fetch_adapter=fetch)
        job = await ask(world, 1, SQL, max_tokens=60)
        await world.until(lambda: fetch.held)
        running = worker.hands.running[job.id]
        worker.hands.pause(running)
        await asyncio.sleep(5.0)
        assert fetch.held
        worker.hands.resume(running)
        await ended(world, job)
        world.check(job)
        assert fetch.asked == [SQL.digest]

    world.run(story)


def test_room_that_comes_while_a_fetch_fails_for_want_of_it_is_not_missed() -> None:
    world, fetch = World(), Fetches(room=1)

    async def story() -> None:
        await world.start(fetch_adapter=fetch)
        first = await ask(world, 1, SQL, max_tokens=4)
        await world.until(lambda: fetch.held)
        began = world.loop.now()
        await ended(world, first, second := await ask(world, 2, LAW, max_tokens=4))
        world.check(second)
        assert world.loop.now() - began < 10.0

    world.run(story)
