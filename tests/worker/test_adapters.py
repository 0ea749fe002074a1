"""Jobs with LoRA adapters at a worker: fetched once, beside other work, by digest; held while a job needs them; failed
where that is impossible."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from axon.domain.failure import Failure
from axon.domain.job_body import ADAPTERS
from axon.domain.model.adapter import JobAdapter
from axon.domain.turn import TurnState
from axon.engine.protocol.messages import Refused, StepOutput
from axon.errors import FetchFailed
from axon.worker.adapters import AT_ONCE, PER_TENANT
from axon.worker.config import WorkerConfig
from axon.worker.worker import Worker
from tests.worker.world import World

SQL = JobAdapter(name="small:sql", digest="1" * 64, source="/adapters/sql")
LAW = JobAdapter(name="small:law", digest="2" * 64, source="/adapters/law")
SLOW_S = 100.0


def adapter(number: int, source: str = "/adapters/x") -> JobAdapter:
    return JobAdapter(name=f"small:{number}", digest=f"{number:064}", source=source)


@dataclass(eq=False)
class Files:
    """An adapter's files; a test may damage them."""

    folder: Path
    is_damaged: bool = False
    is_closed: bool = False

    def is_whole(self) -> bool:
        assert not self.is_closed
        return not self.is_damaged

    def close(self) -> None:
        assert not self.is_closed, "let go of twice"
        self.is_closed = True


@dataclass
class Fetches:
    """Takes a second for each adapter; one whose source is ``gone`` cannot be had, and ``slow`` ones take long."""

    room: int = 1000
    """Adapters that the disk has room for beside each other, if none may give way."""
    asked: list[str] = field(default_factory=list)
    running: set[tuple[str, str]] = field(default_factory=set)
    most: int = 0
    files: dict[str, list[Files]] = field(default_factory=dict)
    closing_s: float = 0.5
    """Seconds that a connection takes to be closed."""
    num_cancelled: int = 0
    gone: set[str] = field(default_factory=set)
    """Digests that cannot be fetched any more."""

    async def __call__(self, adapter: JobAdapter) -> Files:
        digest = adapter.digest
        assert (digest, adapter.source) not in self.running, "fetched twice at the same time"
        self.asked.append(digest)
        self.running.add((digest, adapter.source))
        self.most = max(self.most, len(self.running))
        has_room = len(self.held - {digest}) < self.room
        try:
            await asyncio.sleep(SLOW_S if adapter.source == "slow" else 1.0)
        except asyncio.CancelledError:
            await asyncio.sleep(self.closing_s)
            self.num_cancelled += 1
            raise
        finally:
            self.running.remove((digest, adapter.source))
        if adapter.source == "gone" or digest in self.gone:
            raise FetchFailed("/secret/place is not there.")
        if adapter.source == "broken":
            raise FileExistsError(17, "File exists", "/secret/place")
        if not has_room:
            raise FetchFailed("The disk is full.", code="disk_full")
        self.files.setdefault(digest, []).append(files := Files(Path("/cache") / digest))
        return files

    @property
    def held(self) -> set[str]:
        """The digests whose files are held now."""
        return {digest for digest, files in self.files.items() if any(not each.is_closed for each in files)}


async def ask(world: World, seed: int, adapter: JobAdapter, **more: Any) -> Any:
    return await world.ask(seed=seed, adapter=adapter, needs=(ADAPTERS,), **more)


async def ended(world: World, *jobs: Any) -> None:
    await world.until(lambda: all(job.id in world.kept.turns for job in jobs))


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


async def fails(world: World, job: Any) -> None:
    await ended(world, job)
    turn = world.kept.turns[job.id]
    assert (turn.state, turn.code) == (TurnState.FAILED, Failure.ADAPTER_UNAVAILABLE)
    assert job.adapter.name in turn.message
    assert "/secret" not in turn.message


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


def damage(fetch: Fetches) -> None:
    for files in fetch.files[SQL.digest]:
        files.is_damaged = True


def test_files_that_were_damaged_are_fetched_again_before_another_job_reads_them() -> None:
    world, fetch = World(), Fetches()

    async def story() -> None:
        await world.start(fetch_adapter=fetch)
        long = await ask(world, 1, SQL, max_tokens=200)
        await world.until(lambda: fetch.held)
        damage(fetch)
        await ended(world, short := await ask(world, 2, SQL, max_tokens=2))
        world.check(short)
        assert len(fetch.asked) == 2
        damage(fetch)
        fetch.gone.add(SQL.digest)
        await fails(world, await ask(world, 3, SQL))
        assert long.id not in world.kept.turns, "what the engine has read goes on"
        await ended(world, long)
        world.check(long)
        await world.until(lambda: not fetch.held)

    world.run(story)


def refusing(world: World, worker: Worker, refuses: Callable[[], bool]) -> None:
    """Has the engine refuse sequences with an adapter while ``refuses`` says so."""
    engine = world.engine_of(worker)
    step, message = engine._step, "The adapter cannot be used: it has no adapter_model.safetensors"

    async def refuse() -> StepOutput:
        ids = [id for id, (add, _) in engine._sequences.items() if add.adapter and refuses()]
        for each in ids:
            del engine._sequences[each]
        return replace(await step(), refused=[Refused(each, Failure.ADAPTER_UNUSABLE, message) for each in ids])

    engine._step = refuse  # type: ignore[method-assign]


def test_an_engine_that_cannot_read_lost_files_gets_them_again_and_the_job_is_not_failed() -> None:
    world, fetch = World(), Fetches()

    def are_lost() -> bool:
        if is_first := len(fetch.asked) == 1:
            damage(fetch)
        return is_first

    async def story() -> None:
        refusing(world, await world.start(fetch_adapter=fetch), are_lost)
        await ended(world, job := await ask(world, 1, SQL))
        world.check(job)
        assert fetch.asked == [SQL.digest] * 2

    world.run(story)


def test_files_that_are_whole_and_cannot_be_used_are_refused_once() -> None:
    world, fetch = World(), Fetches()

    async def story() -> None:
        refusing(world, await world.start(fetch_adapter=fetch), lambda: True)
        await ended(world, job := await ask(world, 1, SQL))
        turn = world.kept.turns[job.id]
        assert (turn.state, turn.code) == (TurnState.FAILED, Failure.ADAPTER_UNUSABLE)
        assert fetch.asked == [SQL.digest]

    world.run(story)
