"""Adapters' sources that are slow, hang or are many: they cost nobody else a place, a slot or time; nothing is left."""

import asyncio
from dataclasses import replace

from axon.worker.adapters import AT_ONCE, PER_TENANT
from axon.worker.config import WorkerConfig
from tests.worker.adapter_fetches import LAW, SLOW_S, SQL, Fetches, adapter, ask, ended, fails
from tests.worker.world import World


def test_one_tenants_slow_sources_leave_places_to_others() -> None:
    world, fetch = World(slots=32), Fetches()

    async def story() -> None:
        await world.start(fetch_adapter=fetch)
        slow = [await ask(world, number, adapter(number, "slow"), tenant="slow") for number in range(5)]
        await world.until(lambda: len(fetch.running) == PER_TENANT)
        began = world.loop.now()
        others = [await ask(world, 10 + each, adapter(10 + each), tenant=f"t{each}", max_tokens=2) for each in range(4)]
        same = await ask(world, 20, replace(adapter(4), source="slow"), tenant="quick", max_tokens=2)
        await ended(world, *others)
        assert world.loop.now() - began < 10.0
        await ended(world, same)
        assert world.loop.now() - began < SLOW_S + 10.0, "in its own place, whoever asked first"
        await ended(world, *slow)
        assert sorted(fetch.asked) == sorted({job.adapter.digest for job in (*slow, *others)}), "each one once"
        assert PER_TENANT < fetch.most <= AT_ONCE

    world.run(story)


def test_jobs_that_wait_for_slow_sources_leave_their_slots_to_others() -> None:
    world, fetch = World(slots=2), Fetches()

    async def story() -> None:
        await world.start(fetch_adapter=fetch)
        slow = [await ask(world, number, adapter(number % 4, "slow"), tenant="slow") for number in range(20)]
        await world.until(lambda: fetch.running)
        began = world.loop.now()
        plain = [await world.ask(seed=100 + number, tenant=f"p{number}", max_tokens=5) for number in range(6)]
        await ended(world, *plain)
        assert world.loop.now() - began < 10.0
        await ended(world, *slow)
        for job in (*slow, *plain):
            world.check(job)

    world.run(story)


def test_a_tenant_does_not_wait_for_another_ones_source_of_the_same_files_nor_hears_its_name() -> None:
    world, fetch = World(slots=8), Fetches()
    mine = replace(SQL, name="small:mine", source="/adapters/mine")

    async def story() -> None:
        worker = await world.start(fetch_adapter=fetch)
        slow = await ask(world, 1, replace(SQL, source="slow"), tenant="other", max_tokens=20)
        await world.until(lambda: fetch.running)
        began = world.loop.now()
        job = await ask(world, 2, mine, tenant="me", max_tokens=20)
        await world.until(lambda: fetch.held)
        await asyncio.sleep(0.1)
        assert len(worker.jobs) == 2, "both have a slot now"
        assert not any(each.tenants for each in worker._adapters._wanted.values())
        await ended(world, slow, job)
        assert world.loop.now() - began < 10.0, "both have them from the source that is there"
        world.check(slow)
        world.check(job)
        await world.until(lambda: not fetch.held)
        others = [await ask(world, number, replace(SQL, source="gone"), tenant="other") for number in (3, 4)]
        job = await ask(world, 5, replace(mine, source="gone"), tenant="me")
        await fails(world, job)
        assert SQL.name not in world.kept.turns[job.id].message
        for each in others:
            await fails(world, each)
        assert fetch.asked[-1:] == fetch.asked[2:], "one fetch for all"
        assert not fetch.held

    world.run(story)


def test_no_more_than_a_few_are_fetched_at_once_whoever_asks() -> None:
    world, fetch = World(slots=32), Fetches()

    async def story() -> None:
        await world.start(fetch_adapter=fetch)
        jobs = [await ask(world, number, adapter(number), tenant=f"t{number}") for number in range(12)]
        await ended(world, *jobs)
        assert fetch.most == AT_ONCE

    world.run(story)


def test_a_fetch_that_nobody_waits_for_makes_place_and_is_begun_again_when_it_is_asked_for() -> None:
    world, fetch = World(slots=32), Fetches()

    async def story() -> None:
        await world.start(fetch_adapter=fetch)
        slow = [await ask(world, number, adapter(number, "slow"), tenant=f"t{number}") for number in range(AT_ONCE)]
        await world.until(lambda: len(fetch.running) == AT_ONCE)
        await world.live.log.flag(slow[0].id, cancel=True)
        await ended(world, slow[0])
        assert len(fetch.running) == AT_ONCE, "it goes on while its place is not needed"
        began = world.loop.now()
        quick = await ask(world, 10, SQL, tenant="quick", max_tokens=2)
        await asyncio.sleep(0.1)
        another = await ask(world, 12, LAW, tenant="another", max_tokens=2)
        await asyncio.sleep(0.1)
        again = await ask(world, 11, slow[0].adapter, max_tokens=2)
        await ended(world, quick, another)
        assert world.loop.now() - began < 10.0
        assert fetch.num_cancelled == 1, "it was let close its connection"
        await ended(world, again, *slow)
        world.check(again)
        assert not fetch.held

    world.run(story)


def test_a_fetch_whose_jobs_have_gone_ends_and_nothing_is_held() -> None:
    world, fetch = World(), Fetches()

    async def story() -> None:
        await world.start(fetch_adapter=fetch)
        job = await ask(world, 1, adapter(1, "slow"))
        await world.until(lambda: fetch.running)
        await world.live.log.flag(job.id, cancel=True)
        await ended(world, job)
        await world.until(lambda: fetch.files)
        await asyncio.sleep(1.0)
        assert not fetch.held
        assert fetch.num_cancelled == 0

    world.run(story)


def test_a_source_that_takes_too_long_fails_its_jobs_in_time() -> None:
    world, fetch = World(config=WorkerConfig(adapter_timeout_s=30.0)), Fetches()

    async def story() -> None:
        await world.start(fetch_adapter=fetch)
        began = world.loop.now()
        await fails(world, await ask(world, 1, adapter(1, "slow")))
        assert 30.0 <= world.loop.now() - began < 35.0
        assert not fetch.running

    world.run(story)


def test_a_source_that_hangs_fails_its_jobs_too_and_later_ones_at_once() -> None:
    world, fetch = World(config=WorkerConfig(adapter_timeout_s=30.0)), Fetches(closing_s=100.0)

    async def story() -> None:
        await world.start(fetch_adapter=fetch)
        began = world.loop.now()
        await fails(world, await ask(world, 1, adapter(1, "slow")))
        assert 30.0 <= world.loop.now() - began < 40.0
        assert fetch.running
        began = world.loop.now()
        await fails(world, await ask(world, 2, adapter(1, "slow")))
        await ended(world, other := await ask(world, 3, adapter(2)))
        assert world.loop.now() - began < 10.0
        world.check(other)
        assert len(fetch.asked) == 2
        await world.until(lambda: not fetch.running)
        await ended(world, job := await ask(world, 4, adapter(1)))
        world.check(job)

    world.run(story)


def test_a_worker_that_stops_leaves_no_fetch_behind() -> None:
    world, fetch = World(), Fetches()

    async def story() -> None:
        worker = await world.start(fetch_adapter=fetch)
        await ask(world, 1, adapter(1, "slow"))
        await world.until(lambda: fetch.running)
        await world.stop(worker)
        assert not fetch.running
        assert not fetch.held

    world.run(story)


def test_a_worker_stops_though_a_fetch_hangs() -> None:
    world, fetch = World(), Fetches(closing_s=1e9)

    async def story() -> None:
        worker = await world.start(fetch_adapter=fetch)
        await ask(world, 1, adapter(1, "slow"))
        await world.until(lambda: fetch.running)
        began = world.loop.now()
        await world.stop(worker)
        assert world.loop.now() - began < 60.0
        assert not fetch.running

    world.run(story)
