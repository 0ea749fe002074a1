"""The engine of the simulated fleet, whose tokens are a function of the job, and what an undisturbed stream of it is.

It knows no services and no clients; its world is what it is killed by, and counts the lives that a poison took.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from axon.domain.job import Job
from axon.engine.protocol.messages import Add, Emitted, Ready, StepOutput
from tests.sim.history import History
from tests.sim.processes import Process
from tests.sim.rollout import number_of

SLOTS = 3
STEP_S = 0.03
POISON_SEED = 5000
"""Seed of the job that crashes every engine before its first token."""
POISON_STEPS = 20
"""Steps that its prompt takes: by then, an engine that died of it before is up again."""


def token_at(seed: int, choice: int, position: int, prompt_ids: Sequence[int]) -> int:
    """The one right token of a job's choice at a position."""
    return 32 + (seed * 31 + choice * 13 + position * 17 + sum(prompt_ids) * 7) % 90


def length_of(job: Job | Add, choice: int) -> int:
    """How long an undisturbed choice gets."""
    return 1 + (job.seed + 3 * choice) % job.sampling.max_tokens


def stream_of(job: Job) -> list[int]:
    """The one right stream of a job, in the order of position and choice."""
    lengths = [length_of(job, choice) for choice in range(job.choices)]
    return [
        token_at(job.seed + number_of(job.version), choice, position, job.prompt_of(choice))
        for position in range(max(lengths))
        for choice in range(job.choices)
        if position < lengths[choice]
    ]


class Around(Protocol):
    """What an engine needs of its world."""

    deterministic: bool
    rng: random.Random
    history: History
    engines: dict["SimEngine", None]
    num_poisoned: int


class SimEngine:
    """One token a step for each sequence; a life ends when its process or the nemesis says so."""

    def __init__(self, world: Around, process: Process, version: str) -> None:
        self._world, self._process = world, process
        self._sequences: dict[str, tuple[Add, int]] = {}
        self._alive = True
        self._work = asyncio.Event()
        self._num_poisonous = 0
        """Steps since a poisonous job came in."""
        self._salt = number_of(version) + (0 if world.deterministic else world.rng.randrange(1000))
        self.pid = None
        self.in_step: frozenset[str] = frozenset()

    async def open(self, *, timeout_s: float) -> Ready:
        await asyncio.sleep(0.2)
        self._world.engines[self] = None
        return Ready(kernel="sim", max_model_len=100, max_sequences=SLOTS, num_blocks=1, block_size=1)

    async def outputs(self) -> AsyncIterator[StepOutput]:
        while self._alive:
            if not self._sequences:
                self._work.clear()
                await self._work.wait()
                continue
            await asyncio.sleep(STEP_S)
            await self._process.gate()
            self._num_poisonous = (self._num_poisonous + 1) if POISON_SEED in self.seeds else 0
            if self._alive and self._num_poisonous >= POISON_STEPS:
                self._world.history.note(f"the engine of {self._process.name} is poisoned")
                self._world.num_poisoned += 1
                self.die()
            if self._alive:
                speaking = [entry for entry in self._sequences.values() if entry[0].seed != POISON_SEED]
                yield StepOutput(emitted=[self._emit(*entry) for entry in speaking])

    def _emit(self, add: Add, position: int) -> Emitted:
        token = token_at(add.seed + self._salt, add.choice, position, add.prompt_ids)
        if position + 1 >= length_of(add, add.choice):
            del self._sequences[add.id]
            return Emitted(add.id, token, "stop")
        self._sequences[add.id] = (add, position + 1)
        return Emitted(add.id, token)

    def add(self, sequence: Add) -> None:
        self._sequences[sequence.id] = (sequence, len(sequence.output_ids))
        self._work.set()

    def erase(self, sessions: list[str]) -> None:
        pass

    def abort(self, ids: list[str]) -> None:
        for sequence_id in ids:
            self._sequences.pop(sequence_id, None)

    async def profile(self, kind: str, seconds: float) -> bytes:
        raise NotImplementedError

    def die(self) -> None:
        self._alive = False
        self._work.set()

    def kill(self) -> None:
        self.die()

    async def aclose(self) -> None:
        self.die()
        self._world.engines.pop(self, None)

    @property
    def seeds(self) -> set[int]:
        """Those of the jobs in it."""
        return {add.seed for add, _ in self._sequences.values()}

    @property
    def num_sequences(self) -> int:
        return len(self._sequences)
