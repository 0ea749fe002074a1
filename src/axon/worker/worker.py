"""Off the queue, into the engine, out to the log. Knows no HTTP and no tenant's limits.

deliveries ──► claim ──► engine ──► tokens ──► fenced append ──► end: journal, settle, ack
"""

import asyncio
import contextlib
import itertools
import uuid
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Protocol

import structlog

from axon.dispatch.dispatch import work_channel
from axon.dispatch.ending import Ending
from axon.dispatch.liveness import Liveness
from axon.domain.lane import lane_names
from axon.domain.presence import Load
from axon.domain.turn import TurnState
from axon.engine.messages import Add, Emitted, Ready, Refused, StepOutput
from axon.errors import AxonError, EngineDied, Expired
from axon.ports.live import Live
from axon.ports.queue import Delivery, Queue
from axon.ports.store import TurnStore
from axon.runtime.clock import Clock
from axon.telemetry.metrics import Metrics
from axon.text.tokenizer import Tokenizer
from axon.worker.choice import Choice
from axon.worker.config import WorkerConfig
from axon.worker.emit import Emitter
from axon.worker.intake import Intake, Parked
from axon.worker.running import Running
from axon.worker.trials import Trials

_IDLE_S = 1.0
_RETRY_S = 0.2
_TICK_S = 0.5
_LONGEST_RETRY_S = 5.0
_RELEASE_S = 5.0


class Engine(Protocol):
    """One life of an engine, as the worker speaks to it."""

    @property
    def pid(self) -> int | None: ...

    async def open(self, *, timeout_s: float) -> Ready: ...

    def outputs(self) -> AsyncIterator[StepOutput]: ...

    def add(self, sequence: Add) -> None: ...

    def abort(self, ids: list[str]) -> None: ...

    def kill(self) -> None:
        """Ends it at once, whatever it does; ``outputs`` then ends."""

    async def aclose(self) -> None: ...


class Worker:
    """Runs jobs of one deployment on one engine: ``open``, ``run``, ``drain``, ``aclose``."""

    def __init__(
        self,
        *,
        deployment: str,
        num_lanes: int,
        queue: Queue,
        live: Live,
        turns: TurnStore,
        ending: Ending,
        tokenizer: Tokenizer,
        make_engine: Callable[[], Engine],
        config: WorkerConfig,
        reader_grace_s: float,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self.incarnation = f"worker-{uuid.uuid4().hex[:12]}"
        self.running: dict[str, Running] = {}
        self._deployment = deployment
        self._lanes = lane_names(deployment, num_lanes)
        self._queue, self._live = queue, live
        self._make_engine, self._config = make_engine, config
        self._clock, self._metrics = clock, metrics
        self._engine = make_engine()
        self._liveness = Liveness(live.leases, clock, lease_s=config.lease_s)
        self._intake = Intake(
            owner=self.incarnation,
            queue=queue,
            live=live,
            turns=turns,
            ending=ending,
            tokenizer=tokenizer,
            liveness=self._liveness,
            reader_grace_s=reader_grace_s,
        )
        self._emitter = Emitter(worker=self, log=live.log, queue=queue, ending=ending, metrics=metrics)
        self._slots = 0
        self._room = asyncio.Event()
        self._hints: dict[str, None] = dict.fromkeys(self._lanes)
        """Lanes that may have jobs."""
        self._parked: dict[int, Delivery] = {}
        self._claiming: set[str] = set()
        self._taking = True
        self._engine_up = False
        self._stepped_at = 0.0
        self.version = ""
        """Of the deployment it runs; jobs made for another one are not run. Empty takes all."""
        self._trials = Trials(strike_limit=config.strike_limit)
        self._sequences: dict[str, tuple[Running, Choice]] = {}
        self._sequence_ids = itertools.count(1)
        self._lease_until = 0.0
        self._logger = structlog.get_logger("axon.worker").bind(worker=self.incarnation)

    async def open(self) -> Ready:
        """Holds the lease, declares the lanes and starts the engine."""
        await self._hold()
        await self._queue.declare(self._lanes)
        ready = await self._engine.open(timeout_s=self._config.engine_start_timeout_s)
        self._slots = ready.max_sequences
        self._engine_up = True
        return ready

    async def run(self) -> None:
        """Works until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._renew())
            tasks.create_task(self._listen())
            tasks.create_task(self._take())
            tasks.create_task(self._step())
            tasks.create_task(self._tick())
            tasks.create_task(self._emitter.run())

    async def drain(self, timeout_s: float, *, empty_queue: bool) -> bool:
        """Waits for what runs to end; True when it did. ``empty_queue``: what waits has nobody else to run it."""
        self._taking = empty_queue
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                # Looked at again and again: no queue tells when it has become empty.
                while self.running or self._claiming or (empty_queue and await self._num_waiting()):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
        return not self.running

    @property
    def load(self) -> Load:
        """How busy it is."""
        num_tokens = sum(len(running.job.prompt_ids) + len(running.tokens) for running in self.running.values())
        free_slots = max(0, self._slots - self._num_sequences)
        return Load(slots=self._slots, free_slots=free_slots, num_tokens=num_tokens)

    async def _num_waiting(self) -> int:
        try:
            return sum((await self._queue.depths(self._lanes)).values())
        except AxonError:
            return 1  # not known to be empty

    async def aclose(self) -> None:
        """Gives up what it still holds, so that another worker, or the next start, goes on at once."""
        try:
            async with asyncio.timeout(_RELEASE_S):
                for running in self.running.values():
                    with contextlib.suppress(AxonError):
                        await self._live.log.release(running.job.id, running.epoch)
                        await self._queue.give_back(running.delivery)
                for delivery in self._parked.values():
                    with contextlib.suppress(AxonError):
                        await self._queue.give_back(delivery)
                with contextlib.suppress(AxonError):
                    await self._live.leases.drop(self.incarnation)
        except TimeoutError:
            self._logger.warning("worker.not_released")  # leases and connections lapse by themselves
        finally:
            await self._engine.aclose()

    # --- taking

    async def _listen(self) -> None:
        """Wakes the taking: when there is work, and now and then in case a hint was lost."""
        while True:
            self._hints |= dict.fromkeys(self._lanes)  # at the start, and while nobody can be listened to
            self._room.set()
            with contextlib.suppress(AxonError):
                async with self._live.wakeups.listen(work_channel(self._deployment)) as listener:
                    while True:
                        lane = await listener.next(_IDLE_S)
                        self._hints |= dict.fromkeys([lane.decode()] if lane else self._lanes)
                        self._room.set()
            await asyncio.sleep(_RETRY_S)

    async def _take(self) -> None:
        """Fills free slots, lane after lane."""
        order = self._lanes
        while True:
            await self._room.wait()
            self._room.clear()
            while self._taking and self._num_sequences < self._slots and self._hints:
                hints, self._hints = self._hints, {}  # a hint that comes while we look counts for the next look
                try:
                    delivery = await self._queue.take([lane for lane in order if lane in hints])
                except AxonError as error:
                    self._logger.warning("take.failed", error=str(error))
                    self._hints |= hints
                    await asyncio.sleep(_RETRY_S)
                    continue
                if delivery is None:
                    continue
                self._hints |= hints
                await self._start(delivery)
                after = self._lanes.index(delivery.lane) + 1
                order = self._lanes[after:] + self._lanes[:after]

    async def _start(self, delivery: Delivery) -> None:
        """Claims and runs the job; a delivery that cannot be dealt with now is kept and looked at again."""
        try:
            await self._claim(delivery)
        except AxonError as error:
            self._logger.warning("claim.failed", error=str(error))
            self._parked[delivery.tag] = delivery

    async def _claim(self, delivery: Delivery) -> None:
        job = await self._intake.job(delivery)
        if job is None:
            return
        if job.id in self.running or job.id in self._claiming:
            self._parked[delivery.tag] = delivery  # a second copy of what runs here
            return
        self._claiming.add(job.id)
        try:
            claimed = await self._intake.claim(job, delivery)
        finally:
            self._claiming.discard(job.id)
        match claimed:
            case Parked():
                self._parked[delivery.tag] = delivery
            case Running():
                self._metrics.queue_wait.observe(max(0.0, self._clock.now() - job.created))
                if self.version not in ("", job.version):
                    claimed.end(TurnState.FAILED, "version_gone", "The model version it was asked of is gone.")
                self._run(claimed)

    @property
    def _num_sequences(self) -> int:
        """Places in the engine that its jobs take or will take."""
        return sum(running.job.choices for running in self.running.values())

    def _run(self, running: Running) -> None:
        """Takes the job in; one that is at its end already only tells so."""
        self.running[running.job.id] = running
        self._emitter.touch(running)
        self._fill_engine()

    def _fill_engine(self) -> None:
        """Everything that runs is in the engine; while a job is on trial, it alone is."""
        if not self._engine_up:
            return  # a new one is on its way, and gets everything
        suspect = self._trials.suspect
        for running in self.running.values():
            if running.terminal is None and suspect in (None, running.job.id):
                for choice in running.absent:
                    self._add(running, choice)
            else:
                self._abort(running.choices)

    def _add(self, running: Running, choice: Choice) -> None:
        """A new sequence for the choice: what an aborted one still emits must not be taken for its tokens."""
        job = running.job
        if not self._sequences:
            self._stepped_at = self._clock.monotonic()
        running.enter(choice, sequence_id := str(next(self._sequence_ids)))
        self._sequences[sequence_id] = running, choice
        self._engine.add(
            Add(
                id=sequence_id,
                prompt_ids=list(job.prompt_ids),
                output_ids=list(choice.token_ids),
                sampling=job.sampling,
                seed=job.seed,
                choice=choice.index,
                tenant=job.tenant,
                priority=job.priority,
                deadline=job.deadline,
            )
        )

    def _abort(self, choices: Iterable[Choice]) -> None:
        ids = [choice.sequence_id for choice in choices if choice.sequence_id is not None]
        for sequence_id in ids:
            _, choice = self._sequences.pop(sequence_id)
            choice.sequence_id = None
        if ids:
            self._engine.abort(ids)

    # --- stepping

    async def _step(self) -> None:
        """Reads what the engine emits; when it dies, starts a new one and replays what was in flight."""
        while True:
            async for output in self._engine.outputs():
                self._settle(output)
            await self._restart()

    def _settle(self, output: StepOutput) -> None:
        self._stepped_at = self._clock.monotonic()
        for emitted in output.emitted:
            if entry := self._sequences.get(emitted.id):
                self._push(*entry, emitted)
        for refused in output.refused:
            if entry := self._sequences.get(refused.id):
                self._refuse(entry[0], refused)
        self._metrics.engine(output.counters)

    def _push(self, running: Running, choice: Choice, emitted: Emitted) -> None:
        if running.push(choice, emitted):
            self._abort([choice])  # the engine would go on after a stop string
        self._emitter.touch(running)
        if running.terminal is not None:
            self._acquit(running)
        elif self._trials.gained(running.job.id, running.gained):
            self._fill_engine()

    def _refuse(self, running: Running, refused: Refused) -> None:
        if refused.code == Expired.code:
            self.end(running, TurnState.EXPIRED)
        else:
            self.end(running, TurnState.FAILED, refused.code, refused.message)

    async def _restart(self) -> None:
        self._logger.warning("engine.died", running=len(self.running), pid=self._engine.pid)
        self._metrics.failovers.labels(cause="engine_died").inc()
        self._engine_up = False
        await self._engine.aclose()
        self._judge()
        wait_s = _RETRY_S
        while True:
            self._engine = self._make_engine()
            try:
                await self._engine.open(timeout_s=self._config.engine_start_timeout_s)
                break
            except EngineDied as error:
                self._logger.error("engine.start_failed", error=str(error))
                await self._engine.aclose()
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, _LONGEST_RETRY_S)
        self._engine_up = True
        for running in list(self.running.values()):
            await self._replay(running)
        self._logger.info("engine.restarted", running=len(self.running), pid=self._engine.pid)

    def _judge(self) -> None:
        """Who was in the engine when it died? A job that has done so by itself, again and again, is ended."""
        crashed, self._sequences = self._sequences, {}
        for _, choice in crashed.values():
            choice.sequence_id = None
        guilty = self._trials.crashed({running.job.id: running.gained for running, _ in crashed.values()})
        for running, _ in crashed.values():
            if running.job.id in guilty:
                self.end(running, TurnState.FAILED, EngineDied.code, "This request crashed the engine repeatedly.")

    async def _replay(self, running: Running) -> None:
        """A new attempt at a job this worker holds, from what the log has of it."""
        if running.terminal is not None:
            return
        try:
            claimed = await self._intake.claim(running.job, running.delivery)
        except AxonError as error:
            self._logger.warning("claim.failed", error=str(error))
            claimed = Parked(running.delivery)
        if not self.holds(running):
            return  # it ended meanwhile
        match claimed:
            case Running():
                self._abort(running.choices)
                self._run(claimed)
            case Parked():
                self.park(running)
            case None:
                self.forget(running)

    # --- what the emitter asks of its worker

    def holds(self, running: Running) -> bool:
        """Whether this attempt is the one that counts here."""
        return self.running.get(running.job.id) is running

    def end(self, running: Running, state: TurnState, code: str = "", message: str = "") -> None:
        """Ends the job from outside the engine."""
        self._abort(running.choices)
        running.end(state, code, message)
        self._emitter.touch(running)
        self._acquit(running)

    def _acquit(self, running: Running) -> None:
        """A job that has ended is no suspect any more, however long its end takes to be written down."""
        if self._trials.suspect == running.job.id:
            self._trials.gone(running.job.id)
            self._fill_engine()

    def forget(self, running: Running) -> None:
        """The job is no longer ours; its slot is free."""
        if self.holds(running):
            self._abort(running.choices)
            del self.running[running.job.id]
            self._trials.gone(running.job.id)
            self._fill_engine()
            self._room.set()

    def park(self, running: Running) -> None:
        """Somebody else has the job, or had: its delivery is kept until that is clear."""
        self.forget(running)
        self._parked[running.delivery.tag] = running.delivery

    async def restore(self, running: Running) -> bool:
        """The log has forgotten the job; ours to tell again only while our lease holds by our own clock."""
        return self._clock.monotonic() < self._lease_until and await self._intake.restore(running)

    # --- keeping time

    async def _tick(self) -> None:
        """What no token tells: deadlines, cancelled jobs that wait for their first token, parked deliveries."""
        while True:
            await asyncio.sleep(_TICK_S)
            for running in list(self.running.values()):
                with contextlib.suppress(AxonError):
                    await self._look_at(running)
            self._watch_engine()
            parked, self._parked = self._parked, {}
            for delivery in parked.values():
                await self._start(delivery)

    def _watch_engine(self) -> None:
        """An engine that has work and makes no step hangs: it is killed, which is a failover like any other."""
        silent_s = self._clock.monotonic() - self._stepped_at
        if self._engine_up and self._sequences and silent_s > self._config.step_timeout_s:
            self._logger.error("engine.hangs", silent_s=round(silent_s))
            self._stepped_at = self._clock.monotonic()
            self._engine.kill()

    async def _look_at(self, running: Running) -> None:
        if running.terminal is not None:
            return
        if running.job.deadline <= self._clock.now():
            self.end(running, TurnState.EXPIRED)
            return
        view = await self._live.log.read(running.job.id, after=running.sent)
        if view is not None and view.cancelled:
            self.end(running, TurnState.CANCELLED)

    async def _renew(self) -> None:
        while True:
            with contextlib.suppress(AxonError):
                await self._hold()
            await asyncio.sleep(self._config.renew_s)

    async def _hold(self) -> None:
        asked_at = self._clock.monotonic()
        await self._live.leases.hold(self.incarnation, self._config.lease_s)
        self._lease_until = asked_at + self._config.lease_s
        await self._liveness.look()
