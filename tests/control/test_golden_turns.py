"""Golden prompts are ordinary turns: in the version's own lanes, without a reader or a session, their text not kept."""

from dataclasses import replace

import pytest

from axon.control.golden_turns import TENANT, GoldenTurns
from axon.domain.job import Job
from axon.domain.log.chunk import Chunk, End, Token
from axon.domain.registry.deployment import Deployment
from axon.domain.registry.golden import Golden
from axon.domain.registry.version import Version
from axon.domain.turn import Turn, TurnState, ended, opened
from axon.errors import Busy, Unavailable
from axon.runtime.clock import FakeClock
from axon.sessions.prompt import Prompts, Threads
from axon.text.tokenizer import load_tokenizer
from tests.domain.registry.builders import deployment, snapshot

TAXI = Golden(prompt="taxi", expected="TAXI", max_tokens=16)


class Fleet:
    """Answers every accepted job in capitals, or as it is told."""

    def __init__(self, *deployments: Deployment, terminal: str = TurnState.COMPLETED) -> None:
        self.clock, self.terminal = FakeClock(), terminal
        self.jobs: dict[str, Job] = {}
        self.loaded: list[str] = []
        known = snapshot(*(deployments or (deployment(),)))
        self.turns = GoldenTurns(lambda: known, self._load, self, self, self.clock)

    async def _load(self, version: Version) -> Prompts:
        self.loaded.append(version.id)
        return Prompts(load_tokenizer(None), None, Threads())

    async def accept(self, job: Job) -> Job:
        self.jobs[job.id] = job
        return job

    async def ended(self, turn_id: str, *, wait_s: float) -> Turn | None:
        if not self.terminal:
            raise Busy
        job = self.jobs[turn_id]
        said = load_tokenizer(None).decode(list(job.prompt_ids)).upper()
        end = (End(0, "stop"),)
        chunk = Chunk(first=1, epoch=1, tokens=(Token(0, 1, said),), ends=end, terminal=self.terminal, message="no")
        return ended(opened(job), (chunk,), at=self.clock.now())


async def test_a_golden_prompt_is_a_turn_of_the_version_and_its_answer_is_the_turns() -> None:
    fleet = Fleet(replace(deployment(), pool="gold"))
    assert await fleet.turns.ask("small", "small@v2", TAXI) == "TAXI"
    [job] = fleet.jobs.values()
    assert (job.deployment, job.version, job.tenant) == ("small", "small@v2", TENANT)
    assert job.lane.startswith("small:b#gold/")
    assert (job.sampling.temperature, job.sampling.max_tokens) == (0.0, 16)
    assert (job.background, job.forget, job.pin, job.retain) == (True, True, "", False)


async def test_the_text_of_a_version_is_loaded_once_for_its_prompts() -> None:
    fleet = Fleet()
    for version in ("small@v2", "small@v2", "small@v1"):
        await fleet.turns.ask("small", version, TAXI)
    assert fleet.loaded == ["small@v2", "small@v1"]


async def test_an_answer_is_as_long_as_the_context_allows() -> None:
    fleet = Fleet()
    await fleet.turns.ask("small", "small@v2", replace(TAXI, max_tokens=100_000))
    [job] = fleet.jobs.values()
    assert job.sampling.max_tokens == 2048 - len(job.prompt_ids)


async def test_a_turn_that_is_not_answered_is_no_answer() -> None:
    with pytest.raises(Unavailable, match="no"):
        await Fleet(terminal=TurnState.FAILED).turns.ask("small", "small@v2", TAXI)
    with pytest.raises(Busy):
        await Fleet(terminal="").turns.ask("small", "small@v2", TAXI)
    for names in (("gone", "small@v2"), ("small", "small@v9")):
        with pytest.raises(Unavailable, match="has no version"):
            await Fleet().turns.ask(*names, TAXI)
