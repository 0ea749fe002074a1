"""Supervises the engine's process: feeds it, routes its tokens to their jobs, and replaces it when it dies.

Knows no queue and no log: claiming the jobs again that were in a dead engine is passed in.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

import structlog

from axon.domain.failure import Failure
from axon.domain.job import Job
from axon.domain.turn import TurnState
from axon.engine.protocol.messages import Add, Emitted, Ready, Refused, StepOutput
from axon.errors import EngineDied, Expired
from axon.runtime.clock import Clock
from axon.telemetry.engine_report import EngineReport, WorkerLabels
from axon.telemetry.metrics import Metrics
from axon.worker.adapters import AdapterFolders
from axon.worker.child.answers import Answers
from axon.worker.child.engine import Engine
from axon.worker.child.served import Served
from axon.worker.child.throughput import Throughput
from axon.worker.child.watchdog import Watchdog
from axon.worker.config import WorkerConfig
from axon.worker.job.choice import Choice
from axon.worker.job.hands import Hands
from axon.worker.job.running import Running

_FIRST_BACKOFF_S, _LONGEST_BACKOFF_S = 0.2, 5.0
"""Exponential backoff between two attempts to start an engine."""
_MAX_LEFT = 256
"""Aborted sequences that are remembered at most."""

_logger = structlog.get_logger("axon.worker")


class Charge(Protocol):
    """Charges a job's tenant for tokens that the engine served."""

    def __call__(self, job: Job, *, prefilled: int, cached: int, emitted: int) -> None: ...


Replay = Callable[[Running], Awaitable[None]]
"""Claims a job again that was in an engine that died, for a new attempt."""
Scatter = Callable[[], Awaitable[None]]
"""Hands jobs of a dead engine to workers with room; those that stay are replayed in the next engine."""


class Supervisor:
    """Runs one engine after the other; every choice that is in the engine has a sequence id of its own."""

    def __init__(
        self,
        *,
        hands: Hands,
        make_engine: Callable[[], Engine],
        charge: Charge,
        config: WorkerConfig,
        clock: Clock,
        metrics: Metrics,
        who: Callable[[], WorkerLabels] = lambda: WorkerLabels(""),
        worked: Callable[[float], None] = lambda seconds: None,
        adapters: AdapterFolders | None = None,
    ) -> None:
        """``who`` returns the labels of the engine's metrics, once the engine is up; ``worked`` is told the seconds of
        each step; ``adapters`` finds the files of LoRA adapters."""
        self._adapters = adapters or AdapterFolders(None, clock, timeout_s=config.adapter_timeout_s)
        self._adapters.on_fetched, self._adapters.on_failed = hands.have_files, hands.lack_files
        self._hands, self._trials = hands, hands.trials
        self._make_engine, self._charge, self._worked, self._config = make_engine, charge, worked, config
        self._clock, self._metrics, self._who = clock, metrics, who
        self._report: EngineReport | None = None
        self._ready: Ready | None = None
        self.throughput, self.served, self.answers = Throughput(), Served(), Answers()
        self._engine = make_engine()
        self._is_up = False
        self._watchdog = Watchdog(
            step_timeout_s=config.step_timeout_s, first_step_timeout_s=config.engine_start_timeout_s
        )
        self._sequences: dict[str, tuple[Running, Choice]] = {}
        """The choices that are in the engine, by sequence id."""
        self._sequence_ids = itertools.count(1)
        self._waiting_since: dict[str, float] = {}
        """Sequences that had no place in the last step, with the monotonic time at which they lost it."""
        self._left: dict[str, Running] = {}
        """Sequences that were aborted, oldest first: tokens that they still emit are counted as wasted."""
        hands.on_out.append(self.remove)
        hands.on_fill.append(self.fill)
        hands.on_enter.append(self.enter)

    async def open(self) -> Ready:
        """Starts the first engine."""
        ready = self._ready = await self._engine.open(timeout_s=self._config.engine_start_timeout_s)
        self._is_up = True
        _logger.info("engine.started", pid=self._engine.pid)
        return ready

    @property
    def engine_pid(self) -> int | None:
        """The process id of the present engine; None where it is no process."""
        return self._engine.pid

    async def profile(self, kind: str, seconds: float) -> bytes:
        """Records a profile of the present engine's process, packed; see ``EngineProcess.profile``."""
        return await self._engine.profile(kind, seconds)

    async def aclose(self) -> None:
        await self._engine.aclose()
        if self._report is not None:
            self._report.closed()

    async def run(self, scatter: Scatter, replay: Replay) -> None:
        """Reads what the engine emits; when it dies, hands its jobs on, starts a new one and replays what stays."""
        self._has_begun()
        while True:
            async for output in self._engine.outputs():
                self._settle(output)
            await self._restart(scatter, replay)

    @property
    def report(self) -> EngineReport:
        """The engine's metrics; their labels are known from the first step on."""
        if self._report is None:
            self._report = EngineReport(self._metrics, self._who())
        return self._report

    def _has_begun(self) -> None:
        if self._ready is not None:
            self.report.began(num_slots=self._ready.max_sequences, num_blocks=self._ready.num_blocks)

    # --- what is in the engine

    def fill(self) -> None:
        """Adds every choice that is to run and is not in the engine; while jobs are on trial, removes all others."""
        if not self._is_up:
            return  # an engine is being started, and is filled then
        for running in self._hands.running.values():
            if running.terminal is None and self._trials.may_run(running.job.id):
                for choice in running.absent:
                    self._add(running, choice)
            else:
                self.remove(running)

    def enter(self, running: Running) -> None:
        """Adds the choices of one job, which was just taken in."""
        if running.epoch == 1 and not running.tokens:
            self.answers.took(running.job)
        if self._trials.on_trial:
            self.fill()
        elif self._is_up and running.terminal is None:
            for choice in running.absent:
                self._add(running, choice)

    def waited_s(self, running: Running) -> float:
        """Seconds for which a choice of the job has had no place in the engine's steps."""
        since = [self._waiting_since.get(choice.sequence_id or "") for choice in running.choices]
        now = self._clock.monotonic()
        return max((now - each for each in since if each is not None), default=0.0)

    @property
    def longest_wait_s(self) -> float:
        """The longest ``waited_s`` of all jobs in hand."""
        if not self._waiting_since:  # as most of the time, and asked ten times a second
            return 0.0
        return max(map(self.waited_s, self._hands.running.values()), default=0.0)

    def erase(self, sessions: list[str]) -> bool:
        """Has the engine erase its copies of the sessions' blocks; False while none is up."""
        if self._is_up:
            self._engine.erase(sessions)
        return self._is_up

    def remove(self, running: Running) -> None:
        """Aborts the job's sequences in the engine."""
        self._abort(running.choices)
        if not self._hands.holds(running):
            self._adapters.let_go(running.job.id)

    def _add(self, running: Running, choice: Choice) -> None:
        """Adds the choice under a new sequence id: late tokens of an aborted sequence must not be taken for its own."""
        job = running.job
        folder = self._adapters.folder(job) if job.adapter else None
        if job.adapter and folder is None:
            self._hands.await_files(running)
            return
        if not self._sequences:
            self._watchdog.got_work(self._clock.monotonic())
        running.enter(choice, sequence_id := str(next(self._sequence_ids)))
        self._sequences[sequence_id] = running, choice
        self._engine.add(
            Add(
                id=sequence_id,
                prompt_ids=list(choice.prompt_ids),
                second_start=choice.second_start,
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
                interrupted=running.is_interrupted,
                session=job.session or job.id,
                forget=job.forget,
                adapter=job.adapter.digest if job.adapter else "",
                adapter_folder=str(folder) if folder else "",
            )
        )

    def _abort(self, choices: Iterable[Choice], *, have_ended: bool = False) -> None:
        """Takes the choices out of the engine; it need not be told of those that it has ended itself."""
        ids = [choice.sequence_id for choice in choices if choice.sequence_id is not None]
        for sequence_id in ids:
            running, choice = self._sequences.pop(sequence_id)
            choice.sequence_id = None
            self._end_wait(running, choice, self._waiting_since.pop(sequence_id, None))
            self._left[sequence_id] = running
        while len(self._left) > _MAX_LEFT:
            del self._left[next(iter(self._left))]
        if self._report is not None and self._report.vllm is not None:
            self._report.vllm.left(ids)
        if ids and not have_ended:
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
        if self.report.vllm is not None:
            self.report.vllm.drew([each.id for each in output.emitted if each.id in self._sequences], now)
        for emitted in output.emitted:
            if entry := self._sequences.get(emitted.id):
                self._push(*entry, emitted)
            elif left := self._left.get(emitted.id):
                left.tally.waste()
        if output.embedded:
            self._report_microbatch(output, now)
        for embedded in output.embedded:
            if entry := self._sequences.get(embedded.id):
                self._embed(*entry, embedded.vector)
        for refused in output.refused:
            if entry := self._sequences.get(refused.id):
                self._refuse(entry[0], refused)
        counters = output.counters
        self._worked(counters.step_s)
        self.served.step(
            now,
            used=counters.blocks_used,
            free=counters.blocks_free,
            streams=len(output.emitted),
            tokens=counters.batch_tokens,
            has_work=bool(output.waiting if output.embedded else counters.num_running),
        )
        self.served.activity.saw_gpus(counters.gpus)
        self.report.stepped(counters, len(output.emitted))

    def _report_microbatch(self, output: StepOutput, now: float) -> None:
        taken = [entry for each in output.embedded if (entry := self._sequences.get(each.id))]
        self.report.embedded([now - running.tally.claimed_at for running, _ in taken])

    def _end_wait(self, running: Running, choice: Choice, since: float | None) -> None:
        """The choice has a place now, or needs none any more; only the first choice's wait counts for the job."""
        if since is not None and choice.index == 0:
            running.tally.wait(self._clock.monotonic() - since)

    def _push(self, running: Running, choice: Choice, emitted: Emitted) -> None:
        # A replayed prompt is charged to nobody.
        num_prompt = 0 if choice.token_ids else len(choice.prompt_ids)
        prefilled, cached = max(0, num_prompt - emitted.cached), min(num_prompt, emitted.cached)
        self._charge(running.job, prefilled=prefilled, cached=cached, emitted=1)
        self.throughput.served(prefilled + cached + 1)
        is_first = not choice.token_ids
        self.served.token(running.job.tenant, prompt=prefilled, is_first=is_first)
        if is_first:
            self.served.began(self._clock.monotonic(), self._clock.now() - running.job.created)
            self.answers.began(prefilled=prefilled, cached=cached)
            self.report.first_token(
                num_prompt=num_prompt,
                num_cached=cached,
                seconds=self._clock.now() - running.job.created,
                goes_on=choice.index == 0 and bool(running.job.previous or running.job.ordinal > 1),
            )
        if running.lost is not None:
            (cause, lost_at), running.lost = running.lost, None
            self.report.took_over(cause, self._clock.monotonic() - lost_at)
        if running.push(choice, emitted):
            self.answers.ended(running.job, len(choice.token_ids))
            # The engine does not know stop strings and would go on.
            self._abort([choice], have_ended=emitted.finish is not None)
        self._hands.news(running)
        if running.terminal is not None:
            self._hands.acquit(running)
        elif self._trials.gained(running.job.id, running.gained):
            self.fill()

    def _embed(self, running: Running, choice: Choice, vector: bytes) -> None:
        num_prompt = len(choice.prompt_ids)
        self._charge(running.job, prefilled=num_prompt, cached=0, emitted=0)
        self.throughput.served(num_prompt)
        self.served.vector(running.job.tenant, prompt=num_prompt)
        self.served.began(self._clock.monotonic(), self._clock.now() - running.job.created)
        running.embed(choice, vector)
        self._abort([choice], have_ended=True)
        if running.terminal is not None:
            self._hands.news(running)
            self._hands.acquit(running)
        elif self._trials.gained(running.job.id, running.gained):
            self.fill()

    def _refuse(self, running: Running, refused: Refused) -> None:
        if refused.code == Expired.code:
            self._hands.end(running, TurnState.EXPIRED)
        elif running.job.adapter and not self._adapters.are_whole(running.job):
            self.remove(running)
            self.fill()  # its files were lost before the engine had read them: they are fetched again
        else:
            self._hands.end(running, TurnState.FAILED, refused.code, refused.message)

    # --- its death

    def check_progress(self) -> None:
        """Kills an engine that has work and makes no step, which is a failover like any other."""
        now = self._clock.monotonic()
        if self._is_up and self._sequences and self._watchdog.hangs(now):
            silent_s = round(self._watchdog.silent_s(now))
            _logger.error("engine.hangs", pid=self._engine.pid, silent_s=silent_s, next="killed and restarted")
            self._watchdog.got_work(now)
            self._engine.kill()

    async def _restart(self, scatter: Scatter, replay: Replay) -> None:
        _logger.warning("engine.died", pid=self._engine.pid, running=len(self._hands.running), next="restarted")
        self._metrics.streams.failovers.labels(cause="engine_died").inc()
        self.report.died()
        died_at = self._clock.monotonic()
        self._is_up = self._hands.has_engine = False
        self._judge(self._engine.in_step)
        await asyncio.gather(self._start_another(), scatter())
        self._watchdog.started()
        await asyncio.gather(*map(replay, list(self._hands.running.values())))
        for running in self._hands.running.values():
            running.lost = running.lost or ("engine_died", died_at)
        self._is_up = True
        self._has_begun()
        self._hands.restored()
        _logger.info("engine.restarted", pid=self._engine.pid, running=len(self._hands.running))

    async def _start_another(self) -> None:
        await self._engine.aclose()
        backoff_s = _FIRST_BACKOFF_S
        while True:
            self._engine = self._make_engine()
            try:
                self._ready = await self._engine.open(timeout_s=self._config.engine_start_timeout_s)
                return
            except EngineDied as error:
                _logger.error("engine.start_failed", error=str(error), retry_s=backoff_s)
                await self._engine.aclose()
                await asyncio.sleep(backoff_s)
                backoff_s = min(2 * backoff_s, _LONGEST_BACKOFF_S)

    def _judge(self, in_step: frozenset[str]) -> None:
        """Counts the crash against the jobs of the step in which the engine died, and ends one that is guilty."""
        inside, self._sequences, self._waiting_since = self._sequences, {}, {}
        self._left = {}
        if self.report.vllm is not None:
            self.report.vllm.left(inside)
        for _, choice in inside.values():
            choice.sequence_id = None
        suspects = [running for sequence_id, (running, _) in inside.items() if sequence_id in in_step]
        suspects = suspects or [running for running, _ in inside.values()]
        guilty = self._trials.crashed(
            {running.job.id: running.gained for running in suspects},
            mute={running.job.id for running in suspects if not running.tokens},
        )
        for running in suspects:
            if running.job.id in guilty:
                self.report.poisoned()
                message = "This request crashed the engine repeatedly."
                self._hands.end(running, TurnState.FAILED, Failure.ENGINE_CRASH, message)
