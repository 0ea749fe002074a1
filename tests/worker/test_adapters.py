"""Jobs with LoRA adapters at a worker: fetched once, beside other work, by digest; failed where that is impossible."""

import asyncio
from dataclasses import replace
from pathlib import Path

from axon.domain.adapter import JobAdapter
from axon.domain.failure import Failure
from axon.domain.job_body import ADAPTERS
from axon.domain.turn import TurnState
from axon.errors import FetchFailed
from tests.worker.world import World

SQL = JobAdapter(name="small:sql", digest="1" * 64, source="/adapters/sql")
LAW = JobAdapter(name="small:law", digest="2" * 64, source="/adapters/law")


class Fetches:
    """Takes a second for each adapter; one whose source is ``gone`` cannot be had."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(self, adapter: JobAdapter) -> Path:
        self.asked.append(adapter.digest)
        await asyncio.sleep(1.0)
        if adapter.source == "gone":
            raise FetchFailed("/secret/place is not there.")
        return Path("/cache") / adapter.digest


def test_a_job_waits_for_its_adapter_and_others_do_not() -> None:
    world, fetch = World(), Fetches()

    async def story() -> None:
        worker = await world.start(fetch_adapter=fetch)
        jobs = [await world.ask(seed=seed, adapter=SQL, needs=(ADAPTERS,)) for seed in (1, 2)]
        plain = await world.ask(seed=3, max_tokens=2)
        await world.until(lambda: plain.id in world.kept.turns)
        assert not any(job.id in world.kept.turns for job in jobs)
        await world.until(lambda: worker.identity and world.engine_of(worker)._sequences)
        adds = [add for add, _ in world.engine_of(worker)._sequences.values()]
        assert {(add.adapter, add.adapter_folder) for add in adds} == {(SQL.digest, f"/cache/{SQL.digest}")}
        await world.until(lambda: all(job.id in world.kept.turns for job in jobs))
        for job in (*jobs, plain):
            world.check(job)
        assert fetch.asked == [SQL.digest]

    world.run(story)


def test_another_worker_takes_over_with_the_same_digest() -> None:
    world, first_fetch, second_fetch = World(), Fetches(), Fetches()

    async def story() -> None:
        first = await world.start(fetch_adapter=first_fetch)
        job = await world.ask(seed=1, max_tokens=60, adapter=LAW, needs=(ADAPTERS,))
        while await world.num_tokens(job) < 5:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.01)
        await world.start(fetch_adapter=second_fetch)
        world.kill(first)
        await world.until(lambda: job.id in world.kept.turns)
        world.check(job)
        assert first_fetch.asked == second_fetch.asked == [LAW.digest]

    world.run(story)


def test_a_job_whose_adapter_cannot_be_fetched_fails_and_the_next_one_tries_again() -> None:
    world, fetch = World(), Fetches()

    async def story() -> None:
        await world.start(fetch_adapter=fetch)
        gone = replace(SQL, source="gone")
        for seed in (1, 2):
            job = await world.ask(seed=seed, adapter=gone, needs=(ADAPTERS,))
            await world.until(lambda job=job: job.id in world.kept.turns)  # type: ignore[misc]
            turn = world.kept.turns[job.id]
            assert (turn.state, turn.code) == (TurnState.FAILED, Failure.ADAPTER_UNAVAILABLE)
            assert "small:sql" in turn.message
            assert "/secret" not in turn.message
        assert fetch.asked == [SQL.digest] * 2
        plain = await world.ask(seed=3)
        await world.until(lambda: plain.id in world.kept.turns)
        world.check(plain)

    world.run(story)
