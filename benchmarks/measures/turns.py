"""Engines that answer the same prompts by turns: where an answer ends, the next one begins. Knows no draft model.

With rounds of answers that begin together, the last of them would decide: its stream runs alone at the end.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from axon.domain.sampling import Sampling
from axon.engine.engine import Engine
from axon.engine.protocol.messages import Add


@dataclass(frozen=True, slots=True)
class Turn:
    """What an engine did in a number of steps."""

    num_tokens: int
    seconds: float
    cpu_s: float
    """CPU time of this process, all threads: steadier than ``seconds`` where others use the cores."""
    num_drafted: int
    num_accepted: int


class Streams:
    """Keeps so many streams of an engine busy, with prompts in their order, again from the first where they end."""

    def __init__(self, engine: Engine, prompts: Sequence[list[int]], num_streams: int, sampling: Sampling) -> None:
        self._engine, self._prompts, self._sampling = engine, prompts, sampling
        self._num_streams = num_streams
        self._next = 0
        self._running: dict[str, list[int]] = {}
        self._ended: dict[str, list[int]] = {}
        self._counters = engine.step().counters

    def run(self, num_steps: int) -> Turn:
        """Has the engine make ``num_steps`` steps, all streams busy; returns what they made."""
        before, num_tokens = self._counters, 0
        started, cpu_before = time.perf_counter(), time.process_time()
        for _ in range(num_steps):
            while len(self._running) < self._num_streams:
                self._begin()
            output = self._engine.step()
            num_tokens += len(output.emitted)
            for emitted in output.emitted:
                self._running[emitted.id].append(emitted.token)
                if emitted.finish:
                    self._ended[emitted.id] = self._running.pop(emitted.id)
        seconds, cpu_s = time.perf_counter() - started, time.process_time() - cpu_before
        after = self._counters = output.counters
        num_drafted = after.model_drafted - before.model_drafted
        return Turn(num_tokens, seconds, cpu_s, num_drafted, after.model_accepted - before.model_accepted)

    def close(self) -> dict[str, list[int]]:
        """Gives up what still runs; returns the whole answers."""
        self._engine.abort(list(self._running))
        while self._engine.has_work:
            self._engine.step()
        return self._ended

    def _begin(self) -> None:
        number, id = self._next, f"{self._num_streams} streams, answer {self._next}"
        self._next += 1
        tenant = f"{self._num_streams} {number // len(self._prompts)}"  # no answer finds another's blocks
        prompt_ids = self._prompts[number % len(self._prompts)]
        self._engine.add(Add(id=id, prompt_ids=prompt_ids, sampling=self._sampling, seed=number, tenant=tenant))
        self._running[id] = []
