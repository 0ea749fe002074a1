"""The engine's lives: what runs is in it, what it emits goes to its job, and after a death there is another engine.

Knows no queue and no log: its worker claims anew what was in an engine that died.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Protocol

import structlog

from axon.domain.failure import Failure
from axon.domain.turn import TurnState
from axon.engine.messages import Add, Emitted, Ready, Refused, StepOutput
from axon.errors import EngineDied, Expired
from axon.runtime.clock import Clock
from axon.telemetry.metrics import Metrics
from axon.worker.child.watchdog import Watchdog
from axon.worker.config import WorkerConfig
from axon.worker.job.choice import Choice
from axon.worker.job.running import Running
from axon.worker.job.trials import Trials

_RETRY_S = 0.2
_LONGEST_RETRY_S = 5.0
_MOST_LEFT = 256

_logger = structlog.get_logger("axon.worker")


class Engine(Protocol):
    """One life of an engine, as the worker speaks to it."""

    @property
    def pid(self) -> int | None: ...

    @property
    def in_step(self) -> frozenset[str]:
        """The sequences of the step it died in; empty where that is not known."""

    async def open(self, *, timeout_s: float) -> Ready: ...

    def outputs(self) -> AsyncIterator[StepOutput]: ...

    def add(self, sequence: Add) -> None: ...

    def abort(self, ids: list[str]) -> None: ...

    def kill(self) -> None:
        """Ends it at once, whatever it does; ``outputs`` then ends."""

    async def aclose(self) -> None: ...


class Holder(Protocol):
    """The worker, as the stepping needs it."""

    @property
    def running(self) -> Mapping[str, Running]: ...

    def told(self, running: Running) -> None:
        """The job has something to tell."""

    def served(self, running: Running, *, prefilled: int, cached: int) -> None:
        """The job was given a token."""

    def end(self, running: Running, state: TurnState, code: str = "", message: str = "") -> None: ...

    async def replay(self, running: Running) -> None: ...


class Stepping:
    """One engine after the other, with a name for each choice that is in it."""

    def __init__(
        self,
        *,
        worker: Holder,
        make_engine: Callable[[], Engine],
        config: WorkerConfig,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._worker = worker
        self._make_engine, self._config = make_engine, config
        self._clock, self._metrics = clock, metrics
        self._engine = make_engine()
        self._is_up = False
        self._watchdog = Watchdog(
            step_timeout_s=config.step_timeout_s, first_step_timeout_s=config.engine_start_timeout_s
        )
        self._trials = Trials(strike_limit=config.strike_limit)
        self._sequences: dict[str, tuple[Running, Choice]] = {}
        self._sequence_ids = itertools.count(1)
        self._waiting_since: dict[str, float] = {}
        """Sequences that had no place in the last step."""
        self._left: dict[str, Running] = {}
        """Sequences that were taken out: what they still emit is nobody's."""

    async def open(self) -> Ready:
        """Starts the first engine."""
        ready = await self._engine.open(timeout_s=self._config.engine_start_timeout_s)
        self._is_up = True
        _logger.info("engine.started", pid=self._engine.pid)
        return ready

    @property
    def engine_pid(self) -> int | None:
        """The process id of the engine of now; None where it is no process."""
        return self._engine.pid

    async def aclose(self) -> None:
        await self._engine.aclose()

    async def run(self) -> None:
        """Reads what the engine emits; when it dies, starts a new one and replays what was in flight."""
        while True:
            async for output in self._engine.outputs():
                self._settle(output)
            await self._restart()

    # --- what is in the engine

    def fill(self) -> None:
        """Everything that runs is in the engine; while a job is on trial, it alone is."""
        if not self._is_up:
            return  # a new one is on its way, and gets everything
        suspect = self._trials.suspect
        for running in self._worker.running.values():
            if running.terminal is None and suspect in (None, running.job.id):
                for choice in running.absent:
                    self._add(running, choice)
            else:
                self.remove(running)

    def waited_s(self, running: Running) -> float:
        """How long a choice of the job has had no place in the engine's steps."""
        since = [self._waiting_since.get(choice.sequence_id or "") for choice in running.choices]
        now = self._clock.monotonic()
        return max((now - each for each in since if each is not None), default=0.0)

    @property
    def suspect(self) -> str | None:
        """The job that is on trial."""
        return self._trials.suspect

    def remove(self, running: Running) -> None:
        """Takes the job out of the engine."""
        self._abort(running.choices)

    def acquit(self, running: Running) -> None:
        """A job that has ended is no suspect any more, however long its end takes to be written down."""
        if self._trials.suspect == running.job.id:
            self._trials.gone(running.job.id)
            self.fill()

    def leave(self, running: Running) -> None:
        """The job has left this worker."""
        self.remove(running)
        self._trials.gone(running.job.id)
        self.fill()

    def _add(self, running: Running, choice: Choice) -> None:
        """A new sequence for the choice: what an aborted one still emits must not be taken for its tokens."""
        job = running.job
        if not self._sequences:
            self._watchdog.got_work(self._clock.monotonic())
        running.enter(choice, sequence_id := str(next(self._sequence_ids)))
        self._sequences[sequence_id] = running, choice
        self._engine.add(
            Add(
                id=sequence_id,
                prompt_ids=list(choice.prompt_ids),
                output_ids=list(choice.token_ids),
                sampling=job.sampling,
                seed=job.seed,
                choice=choice.index,
                tenant=job.tenant,
                weight=job.weight,
                kv_share=job.kv_share,
                reserved=job.reserved,
                priority=job.priority,
                deadline=job.deadline,
            )
        )

    def _abort(self, choices: Iterable[Choice]) -> None:
        ids = [choice.sequence_id for choice in choices if choice.sequence_id is not None]
        for sequence_id in ids:
            running, choice = self._sequences.pop(sequence_id)
            choice.sequence_id = None
            self._end_wait(running, choice, self._waiting_since.pop(sequence_id, None))
            self._left[sequence_id] = running
        while len(self._left) > _MOST_LEFT:
            del self._left[next(iter(self._left))]
        if ids:
            self._engine.abort(ids)

    # --- what comes out of it

    def _settle(self, output: StepOutput) -> None:
        self._watchdog.stepped(self._clock.monotonic())
        now = self._clock.monotonic()
        before, self._waiting_since = self._waiting_since, {}
        for each in output.waiting:
            self._waiting_since[each] = before.pop(each, now)
        for sequence_id, since in before.items():
            if entry := self._sequences.get(sequence_id):
                self._end_wait(*entry, since)
        for scored in output.scored:
            if entry := self._sequences.get(scored.id):
                entry[1].score(scored)
        for emitted in output.emitted:
            if entry := self._sequences.get(emitted.id):
                self._push(*entry, emitted)
            elif left := self._left.get(emitted.id):
                left.tally.waste()
        for refused in output.refused:
            if entry := self._sequences.get(refused.id):
                self._refuse(entry[0], refused)
        self._metrics.engine(output.counters)

    def _end_wait(self, running: Running, choice: Choice, since: float | None) -> None:
        """It has a place now, or needs none any more; of several choices the first speaks for the job."""
        if since is not None and choice.index == 0:
            running.tally.wait(self._clock.monotonic() - since)

    def _push(self, running: Running, choice: Choice, emitted: Emitted) -> None:
        # A replay's prompt is nobody's to pay.
        num_prompt = 0 if choice.token_ids else len(choice.prompt_ids)
        self._worker.served(
            running, prefilled=max(0, num_prompt - emitted.cached), cached=min(num_prompt, emitted.cached)
        )
        if running.push(choice, emitted):
            self._abort([choice])  # the engine would go on after a stop string
        self._worker.told(running)
        if running.terminal is not None:
            self.acquit(running)
        elif self._trials.gained(running.job.id, running.gained):
            self.fill()

    def _refuse(self, running: Running, refused: Refused) -> None:
        if refused.code == Expired.code:
            self._worker.end(running, TurnState.EXPIRED)
        else:
            self._worker.end(running, TurnState.FAILED, refused.code, refused.message)

    # --- its death

    def watch(self) -> None:
        """An engine that has work and makes no step hangs: it is killed, which is a failover like any other."""
        now = self._clock.monotonic()
        if self._is_up and self._sequences and self._watchdog.hangs(now):
            _logger.error("engine.hangs", silent_s=round(self._watchdog.silent_s(now)), pid=self._engine.pid)
            self._watchdog.got_work(now)
            self._engine.kill()

    async def _restart(self) -> None:
        num_running = len(self._worker.running)
        _logger.warning("engine.died", running=num_running, pid=self._engine.pid)
        self._metrics.failovers.labels(cause="engine_died").inc()
        self._is_up = False
        in_step = self._engine.in_step
        await self._engine.aclose()
        self._judge(in_step)
        wait_s = _RETRY_S
        while True:
            self._engine = self._make_engine()
            try:
                await self._engine.open(timeout_s=self._config.engine_start_timeout_s)
                break
            except EngineDied as error:
                _logger.error("engine.start_failed", error=str(error))
                await self._engine.aclose()
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, _LONGEST_RETRY_S)
        self._is_up = True
        self._watchdog.started()
        for running in list(self._worker.running.values()):
            await self._worker.replay(running)
        _logger.info("engine.restarted", running=len(self._worker.running), pid=self._engine.pid)

    def _judge(self, in_step: frozenset[str]) -> None:
        """Who was in the step that killed it? A job that has done so by itself, again and again, is ended."""
        inside, self._sequences, self._waiting_since = self._sequences, {}, {}
        self._left = {}
        for _, choice in inside.values():
            choice.sequence_id = None
        suspects = [running for sequence_id, (running, _) in inside.items() if sequence_id in in_step]
        suspects = suspects or [running for running, _ in inside.values()]
        guilty = self._trials.crashed({running.job.id: running.gained for running in suspects})
        for running in suspects:
            if running.job.id in guilty:
                message = "This request crashed the engine repeatedly."
                self._worker.end(running, TurnState.FAILED, Failure.ENGINE_CRASH, message)
