"""Off the queue, into the engine, out to the log. Knows no HTTP and no tenant's limits.

deliveries ──► claim ──► engine ──► tokens ──► fenced append ──► end: journal, settle, ack
"""

import asyncio
import contextlib
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

import structlog

from axon.dispatch.affinity import Residences
from axon.dispatch.dispatch import work_channel
from axon.dispatch.ending import Ending
from axon.dispatch.hint import encode_hint, hint_of
from axon.dispatch.liveness import Liveness
from axon.domain.failure import Failure
from axon.domain.job import Job
from axon.domain.presence import Load
from axon.domain.residence import Residence
from axon.domain.turn import TurnState
from axon.engine.messages import Ready
from axon.errors import AxonError
from axon.ports.journal import Journal
from axon.ports.live import Live
from axon.ports.queue import Delivery, Lanes
from axon.ports.store import TurnStore
from axon.runtime.clock import Clock
from axon.telemetry.metrics import Metrics
from axon.text.tokenizer import Tokenizer
from axon.worker.child.supervisor import Engine, Stepping
from axon.worker.child.throughput import Service
from axon.worker.config import WorkerConfig
from axon.worker.emit import Emitter
from axon.worker.intake import Intake, Parked
from axon.worker.job.pacing import Pacing, Tickets
from axon.worker.job.progress import Checkpoints
from axon.worker.job.running import Running
from axon.worker.lease import make_lease
from axon.worker.peers import handover
from axon.worker.peers.passing import Passing
from axon.worker.peers.versions import Versions
from axon.worker.queue.taking import Taking
from axon.worker.watching import Watching

_RELEASE_S = 5.0
_LOOK_S = 0.05
_SOON_S = 1.0
"""While a sequence has had no place in the engine's steps for so long, nobody is told of free slots."""
_JOBS_PER_SLOT = 16
"""Jobs that it holds at most: those that are held back need no slot, but memory."""
_GONE_S = 10.0
"""A version that no other worker has shown for so long does not come back."""

_logger = structlog.get_logger("axon.worker")


class Worker:
    """Runs jobs of one deployment on one engine: ``open``, ``run``, ``drain``, ``aclose``."""

    def __init__(
        self,
        *,
        deployment: str,
        num_lanes: int,
        queue: Lanes,
        live: Live,
        turns: TurnStore,
        ending: Ending,
        journal: Journal,
        tokenizer: Tokenizer,
        make_engine: Callable[[], Engine],
        config: WorkerConfig,
        reader_grace_s: float,
        clock: Clock,
        metrics: Metrics,
        name: str = "",
        residences: Residences | None = None,
        tickets: Tickets | None = None,
    ) -> None:
        """``residences``: where it says whose blocks it holds, to be offered their next turns under its ``name``.

        ``tickets``: whom it tells what its jobs use of their tenants' limits.
        """
        self.incarnation = f"worker-{uuid.uuid4().hex[:12]}"
        self.version = ""
        """Of the deployment it runs; jobs made for another one are left to others. Empty takes all."""
        self.running: dict[str, Running] = {}
        self._claiming: set[str] = set()
        self.slots, self._block_size = 0, 1
        self._service = Service()
        self._name, self._residences = name, residences
        self._deployment, self._config = deployment, config
        self._queue, self._live = queue, live
        self._clock, self._metrics = clock, metrics
        self.is_leaving = False
        """It is to end: it takes nothing more."""
        liveness = Liveness(live.leases, clock, lease_s=config.lease_s)
        self._lease = make_lease(self.incarnation, live.leases, liveness, config, clock)
        self._taking = Taking(
            worker=self,
            deployment=deployment,
            num_lanes=num_lanes,
            pool=config.pool,
            name=name if residences else "",
            queue=queue,
            live=live,
            metrics=metrics,
        )
        self._intake = Intake(
            owner=self.incarnation,
            queue=queue,
            live=live,
            turns=turns,
            ending=ending,
            tokenizer=tokenizer,
            liveness=liveness,
            reader_grace_s=reader_grace_s,
            checkpoint_s=config.checkpoint_s,
            clock=clock,
        )
        self._stepping = Stepping(worker=self, make_engine=make_engine, config=config, clock=clock, metrics=metrics)
        self._checkpoints = Checkpoints(self.running, journal, every_s=config.checkpoint_s)
        self._emitter = Emitter(worker=self, log=live.log, queue=queue, ending=ending, metrics=metrics)
        self._pacing = Pacing(worker=self, tickets=tickets, clock=clock, metrics=metrics) if tickets else None
        self._watching = Watching(worker=self, log=live.log, wakeups=live.wakeups, liveness=liveness, clock=clock)
        self._passing = Passing(worker=self, deployment=deployment, queue=queue, live=live, metrics=metrics)
        self._versions = Versions(
            live.presences, deployment=deployment, pool=config.pool, me=self.incarnation, clock=clock
        )

    async def open(self) -> Ready:
        """Holds the lease, declares the lanes and starts the engine."""
        await self._lease.open()
        await self._taking.open()
        ready = await self._stepping.open()
        self.slots, self._block_size = ready.max_sequences, ready.block_size
        return ready

    async def run(self) -> None:
        """Works until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._lease.run())
            tasks.create_task(self._taking.listen())
            tasks.create_task(self._taking.look())
            tasks.create_task(self._taking.run())
            tasks.create_task(self._taking.sharing.run())
            tasks.create_task(self._stepping.run())
            tasks.create_task(self._watching.run())
            tasks.create_task(self._watching.hear())
            tasks.create_task(self._emitter.run())
            tasks.create_task(self._checkpoints.run())
            if self._pacing is not None:
                tasks.create_task(self._pacing.run())

    async def drain(self, timeout_s: float, *, empty_queue: bool = False, hand_over: bool = True) -> bool:
        """Lets what runs end, here or, what takes longer, at another worker; True when nothing is left.

        ``empty_queue``: what waits has nobody else to run it. Without ``hand_over`` everything ends here: for a process
        whose own gateway its readers are at.
        """
        num_given = self._passing.num_given
        _logger.info("worker.draining", worker=self._name, turns=len(self.running))
        if not empty_queue:
            await self._leave()
        began = self._clock.monotonic()
        try:
            async with asyncio.timeout(timeout_s):
                # Looked at again and again: no queue tells when it has become empty.
                while self.running or self._claiming or (empty_queue and await self._taking.num_waiting()):
                    if hand_over and not empty_queue and self._clock.monotonic() - began >= self._config.linger_s:
                        await self._passing.hand_over(handover.leaving)
                    await asyncio.sleep(_LOOK_S)
        except TimeoutError:
            pass  # what is left is given up with the worker
        finally:
            num_given = self._passing.num_given - num_given
            _logger.info("worker.drained", worker=self._name, handed_over=num_given, left=len(self.running))
        return not self.running

    async def _leave(self) -> None:
        """Takes nothing more, and returns what it only watches."""
        self.is_leaving = True
        self._taking.stop()
        for delivery in self._watching.take_parked():
            await self.start(delivery)

    @property
    def pool(self) -> str:
        """Of workers: it takes for those whose jobs go there."""
        return self._config.pool

    @property
    def load(self) -> Load:
        """How busy it is; one that is crowded has no free slots for others to count on."""
        num_tokens = sum(running.job.num_prompt_tokens + len(running.tokens) for running in self.running.values())
        free_slots = 0 if self.is_full or self._is_crowded(_SOON_S) else max(0, self.slots - self._num_sequences)
        self._service.look(self._clock.monotonic(), is_busy=self._num_sequences >= self.slots)
        return Load(
            slots=self.slots,
            free_slots=free_slots,
            num_tokens=num_tokens,
            tokens_per_s=round(self._service.tokens_per_s, 1),
        )

    @property
    def engine_pid(self) -> int | None:
        """The process id of its engine; a restart changes it."""
        return self._stepping.engine_pid

    async def aclose(self) -> None:
        """Gives up what it still holds, so that another worker, or the next start, goes on at once."""
        try:
            await _in_time(self._release())
        finally:
            try:
                await _in_time(self._lease.aclose())
            finally:
                await self._stepping.aclose()
        _logger.info("worker.stopped", worker=self._name)

    async def _release(self) -> None:
        for running in list(self.running.values()):
            with contextlib.suppress(AxonError):
                await self._live.log.release(running.job.id, running.epoch)
                await self._queue.give_back(running.delivery)
                await self._live.wakeups.notify(work_channel(self._deployment), encode_hint(hint_of(running.job)))
        for delivery in self._watching.take_parked():
            with contextlib.suppress(AxonError):
                await self._queue.give_back(delivery)

    # --- a job's way in

    @property
    def jobs(self) -> Sequence[Job]:
        """What takes a slot or will take one: not a stream that is held back. Whose turn it is, the engine says."""
        return [running.job for running in self.running.values() if not running.is_idle]

    @property
    def held_back(self) -> Mapping[str, int]:
        """How many streams of each tenant are held back to its rate."""
        return Counter(running.job.tenant for running in self.running.values() if running.is_idle)

    @property
    def is_full(self) -> bool:
        """Whether it holds as much as it may, streams that are held back included."""
        return len(self.running) >= _JOBS_PER_SLOT * self.slots

    def _is_crowded(self, patience_s: float) -> bool:
        return any(self.waited_s(running) >= patience_s for running in self.running.values())

    @property
    def _num_sequences(self) -> int:
        return sum(running.job.choices for running in self.running.values() if not running.is_idle)

    async def start(self, delivery: Delivery) -> None:
        """Claims and runs the job; a delivery that cannot be dealt with now is kept and looked at again."""
        try:
            if self.is_leaving:
                await self._queue.give_back(delivery)
            else:
                await self._claim(delivery)
        except AxonError as error:
            _logger.warning("claim.failed", error=str(error))
            self._watching.park(delivery)

    async def _claim(self, delivery: Delivery) -> None:
        job = await self._intake.job(delivery)
        if job is None or await self._leave_to_others(job, delivery):
            return
        if job.id in self.running or job.id in self._claiming:
            self._watching.park(delivery)  # a second copy of what runs here
            return
        self._claiming.add(job.id)
        try:
            claimed = await self._intake.claim(job, delivery)
        finally:
            self._claiming.discard(job.id)
        match claimed:
            case Parked(owner=owner):
                self._watching.park(delivery, owner)
            case Running():
                self._metrics.queue_wait.observe(max(0.0, self._clock.now() - job.created))
                if self.version not in ("", job.version):
                    claimed.end(TurnState.FAILED, Failure.VERSION_GONE, "The model version it was asked of is gone.")
                self._run(claimed)

    async def _leave_to_others(self, job: Job, delivery: Delivery) -> bool:
        """Whether a job of another version is not to be ended here: somebody has the version, or had it just now."""
        if self.version in ("", job.version):
            return False
        missed_s = await self._versions.missed_s(job.version)
        if missed_s is None:
            await self._passing.give_back(job, delivery)
            return True
        if missed_s < _GONE_S:
            self._watching.park(delivery)
            return True
        return False

    def _run(self, running: Running) -> None:
        """Takes the job in; one that is at its end already only tells so."""
        self.running[running.job.id] = running
        if self._pacing is not None:
            self._pacing.begin(running)
        self._emitter.touch(running)
        self._stepping.fill()

    async def replay(self, running: Running) -> None:
        """A new attempt at a job this worker holds, from what the log has of it."""
        if running.terminal is not None:
            return
        try:
            claimed = await self._intake.claim(running.job, running.delivery)
        except AxonError as error:
            _logger.warning("claim.failed", error=str(error))
            claimed = Parked(running.delivery)
        if not self.holds(running):
            return  # it ended meanwhile
        match claimed:
            case Running():
                self._stepping.remove(running)
                claimed.take_over(running)
                self._run(claimed)
            case Parked():
                self.park(running)
            case None:
                self.forget(running)

    # --- what its parts ask of it

    @property
    def is_owner(self) -> bool:
        """Whether nobody can have taken it for dead, and its jobs for anybody's."""
        return self._lease.holds

    def holds(self, running: Running) -> bool:
        """Whether this attempt is the one that counts here."""
        return self.running.get(running.job.id) is running

    def served(self, running: Running, *, prefilled: int, cached: int) -> None:
        """The engine gave the job a token; before its first one, these tokens of its prompt were computed or found."""
        self._taking.sharing.charge(running.job, prefilled=prefilled, cached=cached, emitted=1)
        self._service.served(prefilled + cached + 1)

    def told(self, running: Running) -> None:
        """The job has something to tell the log."""
        self._emitter.touch(running)

    def release(self, running: Running) -> None:
        """The job may tell more of what was held back."""
        self._emitter.touch(running)

    def end(self, running: Running, state: TurnState, code: str = "", message: str = "") -> None:
        """Ends the job from outside the engine."""
        self._stepping.remove(running)
        running.end(state, code, message)
        self._emitter.touch(running)
        self._stepping.acquit(running)

    def cancel(self, running: Running) -> None:
        """Ends the job with what the log has: it takes nothing more of it."""
        self._stepping.remove(running)
        running.cancel()
        self._emitter.touch(running)
        self._stepping.acquit(running)

    def ask(self, running: Running) -> None:
        """Somebody may have asked for the job's end: the log knows, and says so to whoever appends."""
        running.must_ask = True
        self._emitter.touch(running)

    def stop(self, running: Running, code: str, message: str) -> None:
        """Ends the job with what it has said, as if its length were reached."""
        self._stepping.remove(running)
        running.stop(code, message)
        self._emitter.touch(running)
        self._stepping.acquit(running)

    def pause(self, running: Running, *, paused: bool) -> None:
        """Takes the job out of the engine, because enough of it is held back, or puts it back.

        One that is on trial stays in: nobody else runs until it has shown what it does.
        """
        if paused and self._stepping.suspect == running.job.id:
            return
        running.is_paused = paused
        if paused:
            self._stepping.remove(running)
            self._taking.wake()
        else:
            self._stepping.fill()

    def forget(self, running: Running) -> None:
        """The job is no longer ours; its slot is free."""
        if self.holds(running):
            del self.running[running.job.id]
            self._stepping.leave(running)
            self._taking.wake()

    def park(self, running: Running) -> None:
        """Somebody else has the job, or had: its delivery is kept until that is clear."""
        self.forget(running)
        self._watching.park(running.delivery)

    async def restore(self, running: Running) -> bool:
        """The log has forgotten the job; ours to tell again only while our lease holds by our own clock."""
        return self._lease.holds and await self._intake.restore(running)

    async def note(self, running: Running) -> None:
        """Says that the session's next turn finds its beginning here."""
        if self._residences is None:
            return
        num_prompt = len(running.job.prompt_ids)
        residence = Residence(
            worker=self._name,
            incarnation=self.incarnation,
            num_prompt=num_prompt,
            num_tokens=num_prompt + len(running.tokens),
            num_blocks=(num_prompt + len(running.tokens)) // self._block_size,
            at=self._clock.now(),
        )
        await self._residences.put(running.job, residence)

    def watch_engine(self) -> None:
        """Looks whether the engine hangs."""
        self._stepping.watch()

    def waited_s(self, running: Running) -> float:
        """How long the job has had no place in the engine's steps."""
        return self._stepping.waited_s(running)

    async def relieve(self) -> None:
        """Hands over what has had no place for too long; not while a crash is being looked into.

        Where more was taken than there are slots, that is soon: what waits here would have been taken elsewhere.
        """
        patience_s = self._config.crowded_s
        if self._num_sequences > self.slots:
            patience_s = min(patience_s, _SOON_S)
        if self.is_leaving or self._stepping.suspect or not self._is_crowded(patience_s):
            return
        await self._passing.hand_over(partial(handover.crowded, patience_s=patience_s))

    def leave_engine(self, running: Running) -> None:
        """The job emits nothing more here, for as long as it ``is_leaving``."""
        self._stepping.remove(running)

    def come_back(self, running: Running) -> None:
        """It stays after all."""
        self._stepping.fill()

    def rest(self) -> None:
        """Takes nothing for a moment."""
        self._taking.rest()

    def keep(self, delivery: Delivery) -> None:
        """A delivery that could not be given back."""
        self._watching.park(delivery)


async def _in_time(closing: Awaitable[None]) -> None:
    try:
        async with asyncio.timeout(_RELEASE_S):
            await closing
    except (AxonError, TimeoutError) as error:
        _logger.warning("worker.not_released", error=str(error))  # leases and connections lapse by themselves
