"""The engine's verbs over a scheduler and something that runs batches. Knows no model and no torch."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from axon.domain.failure import Failure
from axon.engine.adapters import Adapters
from axon.engine.batch import Batch, Drawn
from axon.engine.constraint import Compiler
from axon.engine.drafts import NOTHING_DRAFTED, Drafted, Drafts
from axon.engine.phases import enter
from axon.engine.protocol.messages import Add, Counters, Emitted, Ready, Refused, StepOutput
from axon.engine.runner import Flight, Launcher, Mover, Moving, Runner
from axon.engine.schedule.limits.controller import FixedController, StepController, StepLimits
from axon.engine.schedule.scheduler import Scheduler
from axon.engine.schedule.sequence import Source

NO_ADAPTERS = (
    "This engine runs no LoRA adapters: they run in one rank, not in fp8, where engine.adapter_slots is not 0 and, on "
    "a GPU, engine.adapter_memory_bytes has room for one. Merge the adapter into its model to serve it here."
)
_REST_S = 60.0
_NEWS_S = 0.01
"""Longest wait for blocks from files where a step has nothing else to do."""


@dataclass(frozen=True, slots=True)
class _Flying:
    """A launched batch."""

    batch: Batch
    flight: Flight | None
    """None where it only copies blocks."""
    launched_at: float
    moving: Moving | None
    drafted: Drafted


@dataclass(frozen=True, slots=True)
class _Computed:
    """A batch whose results are here."""

    batch: Batch
    drawn: list[Drawn]
    compute_s: float
    """Time that the batch took."""
    drafted: Drafted = NOTHING_DRAFTED


class EngineCore:
    """Token ids in, token ids out, one step at a time.

    With a launcher a step plans and launches a batch and then settles the one before it, so that the device has its
    next batch before it is done with the last. Where drafts are wanted it is settled first: nothing can be drafted
    behind a token that is not known yet.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        runner: Runner,
        *,
        kernel: str,
        controller: StepController | None = None,
        launcher: Launcher | None = None,
        later: Callable[[], bool] | None = None,
        open_grammars: Callable[[], Compiler] | None = None,
        grammars_are_dear: bool = False,
        mover: Mover | None = None,
        draft_model: Drafts | None = None,
        adapters: Adapters | None = None,
    ) -> None:
        """``later`` does a piece of what can wait, if there is any, and returns whether more is left.

        ``open_grammars`` is called for the first grammar; without it, sequences that have one are refused. With
        ``grammars_are_dear``, ``prepare`` calls it before. ``mover`` copies the blocks of the scheduler's shelf.
        ``draft_model``, which may be a head, drafts for streams that have no other drafts. Without ``adapters``,
        sequences that name one are refused.
        """
        self._mover, self._draft_model, self._adapters = mover, draft_model, adapters
        self._compiling: dict[str, str] = {}
        """Adapters of the sequences whose grammars are compiled."""
        self._open_grammars = open_grammars
        self._grammars_are_dear = grammars_are_dear
        self._grammars: Compiler | None = None
        self._scheduler = scheduler
        self._runner = runner
        self._controller = controller or FixedController(StepLimits(max_prefill_tokens=scheduler.max_prefill_tokens))
        self._launcher = launcher
        self._later = later
        self._has_landed = False
        """Whether a step's results have come: what can wait goes behind the first tokens."""
        self._flying: _Flying | None = None
        self._landed_at = 0.0
        self._kernel = kernel
        self._note: Callable[[Sequence[str]], None] | None = None

    def note_steps(self, note: Callable[[Sequence[str]], None]) -> None:
        """Has ``note`` called before each step with the ids of the sequences in it."""
        self._note = note

    @property
    def has_work(self) -> bool:
        """Whether a step would do something."""
        return self._has_steps or bool(self._pending_ids)

    @property
    def wait_s(self) -> float:
        """No step is put off."""
        return 0.0

    @property
    def rest_s(self) -> float | None:
        """Copies of blocks grow too old while nothing is asked."""
        return _REST_S if self._scheduler.shelf is not None else None

    @property
    def _pending_ids(self) -> list[str]:
        """The sequences that wait for their adapters or their grammars."""
        grammars = self._grammars.pending_ids if self._grammars else []
        return grammars + self._adapters.pending_ids if self._adapters else grammars

    @property
    def _has_steps(self) -> bool:
        return self._scheduler.has_work or self._flying is not None

    def ready(self) -> Ready:
        """The model's kernel and the sizes of this engine."""
        return Ready(
            kernel=self._kernel,
            max_model_len=self._scheduler.max_model_len,
            max_sequences=self._scheduler.max_sequences,
            num_blocks=self._scheduler.pool.num_blocks,
            block_size=self._scheduler.pool.block_size,
            eos_ids=sorted(self._scheduler.eos_ids),
        )

    def add(self, add: Add) -> None:
        """Takes in a sequence for the next step; a refusal comes with that step's output."""
        self.abort([add.id])
        if not add.adapter:
            self._enter(add)
        elif self._adapters is None:
            self._scheduler.refuse(add.id, Failure.ADAPTER_UNUSABLE, NO_ADAPTERS)
        else:
            self._adapters.submit(add)

    def _enter(self, add: Add) -> None:
        """Takes in a sequence whose adapter is in memory, if it has one."""
        if not add.sampling.grammar:
            self._scheduler.add(add)
        elif self._open_grammars is None:
            self._scheduler.refuse(add.id, Failure.INVALID, "This engine knows no grammars.")
        else:
            self._grammars = self._grammars or self._open_grammars()
            self._grammars.submit(add)
            if add.adapter:
                self._compiling[add.id] = add.adapter

    def abort(self, ids: list[str]) -> None:
        """Forgets sequences and frees their blocks; unknown ids are ignored."""
        self._scheduler.abort(ids)
        if self._grammars is not None:
            self._grammars.drop(ids)
        if self._adapters is not None:
            self._adapters.drop(ids)

    def erase(self, sessions: list[str]) -> None:
        """Erases the copies of blocks of these sessions outside the device."""
        self._scheduler.erase(sessions)

    def step(self) -> StepOutput:
        """Computes one batch and returns its output; with a launcher, the output of the batch before it."""
        self._take_in()
        started_at = time.perf_counter()
        limits = self._controller.limits(self._scheduler)
        first = self._settle_first(limits, started_at)
        batch, drafted = self._draft(self._plan(limits))
        done = self._compute(batch, started_at, drafted)
        settled, emitted = first or self._settle(done, started_at)
        return self._output(emitted, self._count(settled, time.perf_counter() - started_at))

    def tend(self) -> bool:
        """Does a piece of what was left for later; returns whether more is left. More may come up afterwards."""
        return self._later is not None and self._later()

    def prepare(self) -> None:
        """Begins what the first grammar would wait for, in a thread; a second call does nothing. For an idle moment."""
        if self._grammars is None and self._grammars_are_dear and self._open_grammars is not None:
            self._grammars = self._open_grammars()
        if self._scheduler.shelf is not None:
            self._scheduler.shelf.take_news(time.time())

    def check(self) -> None:
        """Proves the engine's bookkeeping; raises AssertionError where it is wrong."""
        self._scheduler.check()
        if self._adapters is not None:
            self._adapters.check()

    def close(self) -> None:
        """Releases what it has outside its process, and its threads."""
        if self._grammars is not None:
            self._grammars.close()
        if self._scheduler.shelf is not None:
            self._scheduler.shelf.close()
        if self._adapters is not None:
            self._adapters.close()

    def _take_in(self) -> None:
        """Lets the sequences in that wait for what is there now, after a piece of what was left for later."""
        if self._has_landed:
            self.tend()
        self._take_loaded()
        self._take_compiled()
        enter("schedule")

    def _plan(self, limits: StepLimits) -> Batch:
        """The batch that the scheduler decides on, once the blocks that it reads are there."""
        batch = self._scheduler.schedule(time.time(), limits)
        self._await_blocks(batch)
        self._note_ids(batch)
        return batch

    def _take_loaded(self) -> None:
        """Lets the sequences in whose adapters are in memory; waits a moment for one if nothing else is to do."""
        if self._adapters is None or not self._adapters.pending_ids:
            return
        self._note_ids()  # a crash over an adapter's file is theirs
        compiling = self._grammars.pending_ids if self._grammars else []
        self._compiling = {id: self._compiling[id] for id in compiling if id in self._compiling}
        in_use = self._scheduler.adapters | set(self._compiling.values())
        for add, refused in self._adapters.take(in_use, may_wait=not self._has_steps and not compiling):
            if refused is not None:
                self._scheduler.refuse(add.id, refused.code, refused.message)
            else:
                self._enter(add)

    def _take_compiled(self) -> None:
        """Lets the sequences in whose grammars are compiled; waits for one if nothing else is to do."""
        if self._grammars is None or not self._grammars.pending_ids:
            return
        self._note_ids()  # a crash of the compiler is theirs
        for add, outcome in self._grammars.take(may_wait=not self._has_steps):
            if isinstance(outcome, Refused):
                self._scheduler.refuse(add.id, outcome.code, outcome.message)
            else:
                self._scheduler.add(add, outcome)

    def _note_ids(self, batch: Batch | None = None) -> None:
        """Notes the sequences of the batch that comes next and of the one that is in flight."""
        if self._note is not None:
            batches = (self._flying.batch if self._flying else None, batch)
            ids = [span.id for each in batches if each is not None for span in each.spans]
            self._note(ids + self._pending_ids)

    def _draft(self, batch: Batch) -> tuple[Batch, Drafted]:
        """Has the draft model draft for the streams that the plan asks it for; adds its drafts to the batch."""
        asks = self._scheduler.drafting.asks
        if self._draft_model is None or not asks:
            return batch, NOTHING_DRAFTED
        drafted = self._draft_model.draft(asks)
        return self._scheduler.add_drafts(batch, drafted), drafted

    def _settle_first(self, limits: StepLimits, started_at: float) -> tuple[Batch, list[Emitted]] | None:
        """Settles the batch in flight before the next one is planned, where one of the two may have drafts."""
        due = self._flying
        if due is None or not (limits.has_drafts or any(span.drafts for span in due.batch.spans)):
            return None
        self._flying = None
        settled = self._settle(self._land(due), started_at)
        enter("schedule")
        return settled

    def _settle(self, done: _Computed, started_at: float) -> tuple[Batch, list[Emitted]]:
        """Takes in the results of a batch, and what it took."""
        self._has_landed = self._has_landed or bool(done.batch.spans)
        enter("settle")
        emitted = self._scheduler.settle(done.batch, done.drawn)
        self._note_ids()
        self._learn(done, time.perf_counter() - started_at)
        return done.batch, emitted

    def _compute(self, batch: Batch, started_at: float, drafted: Drafted) -> _Computed:
        """Runs the batch; with a launcher, launches it and waits for the batch before it."""
        if self._launcher is None:
            if self._grammars is not None:
                self._grammars.begin(batch.masks)
            copies_s = self._finish(batch, self._move(batch))
            enter("forward")
            drawn = self._runner.run(batch) if batch.spans else []
            return _Computed(batch, drawn, time.perf_counter() - started_at - copies_s, drafted)
        due = self._flying
        self._flying = None if batch.is_empty else self._launch(self._launcher, batch, started_at, drafted)
        return _Computed(Batch(), [], 0.0) if due is None else self._land(due)

    def _land(self, due: _Flying) -> _Computed:
        """Waits for a launched batch."""
        enter("wait for device")
        drawn = due.flight.land() if due.flight is not None else []
        self._finish(due.batch, due.moving)
        # The device began the batch when it was launched or when the one before it landed, whichever came later.
        begun_at, self._landed_at = max(self._landed_at, due.launched_at), time.perf_counter()
        return _Computed(due.batch, drawn, self._landed_at - begun_at, due.drafted)

    def _launch(self, launcher: Launcher, batch: Batch, started_at: float, drafted: Drafted) -> _Flying:
        is_idle = self._flying is None
        moving = self._move(batch)
        enter("launch")
        flight = launcher.launch(batch) if batch.spans else None
        if moving is not None:
            moving.precede()
        if is_idle:
            waited_s = time.perf_counter() - max(self._landed_at, started_at) - drafted.seconds
            drafted = replace(drafted, wait_s=max(0.0, waited_s))
        return _Flying(batch, flight, started_at, moving, drafted)

    def _move(self, batch: Batch) -> Moving | None:
        """Begins the batch's copies of blocks."""
        if batch.copies is None or self._mover is None:
            return None
        enter("copy blocks")
        return self._mover.move(batch.copies)

    def _finish(self, batch: Batch, moving: Moving | None) -> float:
        """Waits for the batch's copies; returns the seconds that they took."""
        shelf = self._scheduler.shelf
        if shelf is None or moving is None or batch.copies is None:
            return 0.0
        copies_s = moving.finish()
        shelf.costs.loaded(batch.copies.num_loaded + len(batch.copies.saves), copies_s)
        return copies_s

    def _await_blocks(self, batch: Batch) -> None:
        """Waits a moment for blocks from files where they are all that sequences wait for."""
        shelf = self._scheduler.shelf
        if shelf is not None and batch.is_empty and self._flying is None and shelf.awaits_news:
            enter("wait for blocks")
            shelf.take_news(time.time(), _NEWS_S)

    def _learn(self, done: _Computed, step_s: float) -> None:
        """Takes in how long a batch took, and what its drafts took and were worth."""
        compute_s, drafting = done.compute_s - done.drafted.seconds, self._scheduler.drafting
        drafted = replace(done.drafted, num_accepted=drafting.take_accepted(), num_looked_up=drafting.take_looked_up())
        self._controller.observe(done.batch, step_s=step_s - drafted.seconds, compute_s=compute_s, drafted=drafted)
        if self._scheduler.shelf is not None:
            num_tokens = sum(len(span.token_ids) for span in done.batch.spans if not span.is_stream)
            if 2 * num_tokens > done.batch.num_tokens:
                self._scheduler.shelf.costs.computed(num_tokens, compute_s)

    def _output(self, emitted: list[Emitted], counters: Counters) -> StepOutput:
        scored, refused = self._scheduler.take_scored(), self._scheduler.take_refused()
        waiting = self._scheduler.waiting_ids + self._pending_ids
        return StepOutput(emitted=emitted, scored=scored, refused=refused, waiting=waiting, counters=counters)

    def _count(self, batch: Batch, step_s: float) -> Counters:
        pool, shelf = self._scheduler.pool, self._scheduler.shelf
        drafted, accepted = self._scheduler.drafting.num_drafted, self._scheduler.drafting.num_accepted
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
            drafted=drafted.total() - drafted[Source.MODEL],
            accepted=accepted.total() - accepted[Source.MODEL],
            model_drafted=drafted[Source.MODEL],
            model_accepted=accepted[Source.MODEL],
            step_s=step_s,
            shelf=shelf.counters() if shelf is not None else None,
            adapters_loaded=self._adapters.num_loaded if self._adapters else 0,
            adapters_dropped=self._adapters.num_dropped if self._adapters else 0,
        )
