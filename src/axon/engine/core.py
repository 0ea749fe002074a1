"""The engine's verbs over a scheduler and something that runs batches. Knows no model and no torch."""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from axon.engine.batch import Batch, Drawn
from axon.engine.protocol.messages import Add, Counters, Ready, StepOutput
from axon.engine.schedule.feedback_controller import Throttle
from axon.engine.schedule.learned_controller import Pace
from axon.engine.schedule.scheduler import Scheduler


class Runner(Protocol):
    """Computes a batch."""

    def run(self, batch: Batch) -> list[Drawn]:
        """Returns what came of each draw of the batch, in order; see ``axon.engine.sample.sampler``."""
        ...


class Flight(Protocol):
    """A batch that is being computed."""

    def land(self) -> list[Drawn]:
        """Waits for it, and returns what came of each draw, in order."""
        ...


class Launcher(Protocol):
    """Computes batches beside this thread, in the order of their launches."""

    def launch(self, batch: Batch) -> Flight:
        """Starts a batch; its placeholders stand for what the batch launched before it draws."""
        ...


class EngineCore:
    """Token ids in, token ids out, one step at a time.

    With a launcher a step plans and launches a batch and then settles the one before it, so that the device has its
    next batch before it is done with the last.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        runner: Runner,
        *,
        kernel: str,
        pace: Pace | None = None,
        throttle: Throttle | None = None,
        launcher: Launcher | None = None,
        speculates: bool = False,
    ) -> None:
        self._scheduler = scheduler
        self._runner = runner
        self._launcher = launcher
        self._flying: tuple[Batch, Flight, float] | None = None
        """With the time of its launch."""
        self._landed = 0.0
        self._pace, self._throttle = pace, throttle
        # A guess is told right or wrong by the step that computes it: the next one must not be on its way by then.
        self._speculates = speculates and launcher is None
        self._kernel = kernel
        self._note: Callable[[Sequence[str]], None] | None = None

    def note_steps(self, note: Callable[[Sequence[str]], None]) -> None:
        """Tells ``note`` before each step which sequences it is about."""
        self._note = note

    @property
    def has_work(self) -> bool:
        """Whether a step would do something."""
        return self._scheduler.has_work or self._flying is not None

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
        """Computes one batch and returns what came of it, or of the one before it where batches are launched."""
        started = time.perf_counter()
        if self._pace is not None and (self._speculates or self._scheduler.has_prompts):
            outlook = self._scheduler.outlook()
            self._scheduler.max_prefill_tokens = self._pace.num_prefill_tokens(outlook)
            if self._speculates:
                self._scheduler.draft_price = self._pace.draft_price(outlook)
        elif self._throttle is not None:
            self._scheduler.max_prefill_tokens = self._throttle.chunk
        batch = self._scheduler.schedule(time.time())
        self._note_who(batch)
        batch, drawn, took_s = self._compute(batch, started)
        emitted = self._scheduler.settle(batch, drawn)
        self._note_who()
        step_s = time.perf_counter() - started
        if self._pace is not None:
            self._pace.observe(batch, step_s)
        elif self._throttle is not None:
            self._throttle.observe(batch, took_s)
        counters = self._count(batch, step_s)
        scored, refused = self._scheduler.take_scored(), self._scheduler.take_refused()
        waiting = self._scheduler.waiting_ids
        return StepOutput(emitted=emitted, scored=scored, refused=refused, waiting=waiting, counters=counters)

    def check(self) -> None:
        """Proves the engine's bookkeeping; raises AssertionError where it is wrong."""
        self._scheduler.check()

    def close(self) -> None:
        """Lets go of what it has outside its process."""

    def _note_who(self, batch: Batch | None = None) -> None:
        """Those of the batch that comes next, and of the one that is on its way."""
        if self._note is not None:
            batches = (self._flying[0] if self._flying else None, batch)
            self._note([span.id for each in batches if each is not None for span in each.spans])

    def _compute(self, batch: Batch, started: float) -> tuple[Batch, list[Drawn], float]:
        """The batch that is done, which need not be the one that is given, what was drawn, and how long it took."""
        if self._launcher is None:
            drawn = self._runner.run(batch) if batch.spans else []
            return batch, drawn, time.perf_counter() - started
        due = self._flying
        self._flying = (batch, self._launcher.launch(batch), started) if batch.spans else None
        if due is None:
            return Batch(), [], 0.0
        done, flight, launched = due
        drawn = flight.land()
        # It began when the one before it was done, or it was launched: whichever came later.
        begun, self._landed = max(self._landed, launched), time.perf_counter()
        return done, drawn, self._landed - begun

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
            yielded=self._scheduler.yielded,
            running_by_priority=self._scheduler.running_by_priority,
            drafted=self._scheduler.num_drafted,
            accepted=self._scheduler.num_accepted,
            step_s=step_s,
        )
