"""When the tokens of jobs go out: each step's at once beside few jobs, in rounds beside several."""

from collections.abc import Sequence
from typing import Any

import pytest

from axon.domain.job import Job
from axon.domain.log.chunk import Chunk
from axon.ports.live import Appended
from axon.worker.config import WorkerConfig
from tests.worker.world import STEP_S, World

ROUND_S = 3.25 * STEP_S


class Appends:
    """What the log was told, by job, and how often it was told anything."""

    def __init__(self, world: World, patch: pytest.MonkeyPatch) -> None:
        self._world, self._append = world, world.live.log.append
        self.chunks: dict[str, list[tuple[float, Chunk]]] = {}
        self.num_calls = 0
        patch.setattr(type(world.live.log), "append", lambda log, batch: self._noted(batch))

    async def _noted(self, batch: Sequence[tuple[str, Chunk]]) -> Sequence[Appended]:
        self.num_calls += 1
        for job_id, chunk in batch:
            self.chunks.setdefault(job_id, []).append((self._world.loop.monotonic(), chunk))
        return await self._append(batch)

    def sizes(self, job: Job) -> list[int]:
        return [len(chunk.tokens) for _, chunk in self.chunks[job.id]]


def told(num_jobs: int, patch: pytest.MonkeyPatch, **config: Any) -> tuple[Appends, list[Job]]:
    """Some jobs of ten tokens that run together."""
    world = World(config=WorkerConfig(**config))
    appends = Appends(world, patch)
    jobs: list[Job] = []

    async def story() -> None:
        jobs.extend([await world.ask(seed=seed) for seed in range(num_jobs)])
        await world.start()
        await world.until(lambda: len(world.kept.turns) == num_jobs)
        for job in jobs:
            world.check(job)

    world.run(story)
    return appends, jobs


def test_beside_several_jobs_the_first_token_and_the_end_go_at_once_and_the_others_in_rounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    appends, jobs = told(3, monkeypatch, gather_s=ROUND_S)
    for job in jobs:
        # The second token begins a round; three steps gather for the next one, and the end takes the rest along.
        assert appends.sizes(job) == [1, 1, 3, 3, 2]
        times = [at for at, _ in appends.chunks[job.id]]
        assert times[1] - times[0] == pytest.approx(STEP_S)
        assert times[2] - times[1] == pytest.approx(ROUND_S)
        assert appends.chunks[job.id][-1][1].terminal == "completed"
    assert appends.num_calls == 5, "the jobs of a step go together"


@pytest.mark.parametrize(("num_jobs", "gather_s"), [(2, ROUND_S), (3, 0.0), (3, STEP_S / 2)])
def test_each_steps_tokens_go_at_once_beside_few_jobs_without_rounds_and_with_slow_steps(
    num_jobs: int, gather_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    appends, jobs = told(num_jobs, monkeypatch, gather_s=gather_s)
    assert all(appends.sizes(job) == [1] * 10 for job in jobs)


def test_a_cancelled_job_does_not_wait_for_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(config=WorkerConfig(gather_s=1e6))

    async def story() -> None:
        jobs = [await world.ask(seed=seed, max_tokens=100) for seed in range(3)]
        await world.start()
        while await world.num_tokens(jobs[0]) < 2:
            await world.settled()
        asked_at = world.loop.monotonic()
        await world.live.log.flag(jobs[0].id, cancel=True)
        await world.until(lambda: jobs[0].id in world.kept.turns)
        assert world.loop.monotonic() - asked_at < 2.0
        assert len(world.kept.turns[jobs[0].id].tokens) == 2
        await world.until(lambda: len(world.kept.turns) == 3)
        for job in jobs[1:]:
            world.check(job)

    world.run(story)
