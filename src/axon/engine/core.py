"""The engine's verbs over a scheduler and something that runs batches. Knows no model and no torch."""

import time
from typing import Protocol

from axon.engine.batch import Batch, Drawn
from axon.engine.messages import Add, Counters, Ready, StepOutput
from axon.engine.pace import Pace
from axon.engine.scheduler import Scheduler


class Runner(Protocol):
    """Computes a batch."""

    def run(self, batch: Batch) -> list[Drawn]:
        """Returns what came of each draw of the batch, in order; see ``axon.engine.sampler``."""
        ...


class EngineCore:
    """Token ids in, token ids out, one step at a time."""

    def __init__(self, scheduler: Scheduler, runner: Runner, *, kernel: str, pace: Pace | None = None) -> None:
        self._scheduler = scheduler
        self._runner = runner
        self._pace = pace
        self._kernel = kernel

    @property
    def has_work(self) -> bool:
        """Whether a step would do something."""
        return self._scheduler.has_work

    def ready(self) -> Ready:
        """What this engine runs, and how much of it at once."""
        return Ready(
            kernel=self._kernel,
            max_model_len=self._scheduler.max_model_len,
            max_sequences=self._scheduler.max_sequences,
            num_blocks=self._scheduler.pool.num_blocks,
            block_size=self._scheduler.pool.block_size,
            eos_ids=sorted(self._scheduler.eos_ids),
        )

    def add(self, add: Add) -> None:
        """Takes up a sequence from the next step on; a refusal comes with that step's output."""
        self._scheduler.add(add)

    def abort(self, ids: list[str]) -> None:
        """Forgets sequences and frees their blocks; unknown ids are ignored."""
        self._scheduler.abort(ids)

    def step(self) -> StepOutput:
        """Computes one batch and returns what came of it."""
        started = time.perf_counter()
        if self._pace is not None:
            self._scheduler.max_prefill_tokens = self._pace.num_prefill_tokens
        batch = self._scheduler.schedule(time.time())
        drawn = self._runner.run(batch) if batch.spans else []
        emitted = self._scheduler.settle(batch, drawn)
        step_s = time.perf_counter() - started
        if self._pace is not None:
            self._pace.observe(batch, step_s)
        counters = self._count(batch, step_s)
        return StepOutput(emitted=emitted, refused=self._scheduler.take_refused(), counters=counters)

    def check(self) -> None:
        """Proves the engine's bookkeeping; raises AssertionError where it is wrong."""
        self._scheduler.check()

    def _count(self, batch: Batch, step_s: float) -> Counters:
        pool = self._scheduler.pool
        return Counters(
            num_running=self._scheduler.num_running,
            num_waiting=self._scheduler.num_waiting,
            batch_tokens=batch.num_tokens,
            blocks_free=pool.num_free,
            blocks_used=pool.num_used,
            blocks_cached=pool.num_cached,
            preemptions=self._scheduler.preemptions,
            step_s=step_s,
        )
