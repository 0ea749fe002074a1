"""A worker: off the queue, into the engine, out to the log. Knows no HTTP and no tenant's limits.

    queue/taking ──► intake ──► job/hands ──► child/supervisor ──► emit: fenced append ──► journal, settle, ack

The worker only puts its parts together, starts them and ends them. Each part is given what it needs; the jobs that run
are in ``Hands``.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Collection, Sequence

import structlog

from axon.dispatch.affinity import Residences
from axon.domain.job import Job
from axon.domain.presence import Load
from axon.engine.protocol.messages import Ready
from axon.errors import AxonError
from axon.ownership.ending import Ending
from axon.ownership.liveness import Liveness
from axon.ports.journal import Journal
from axon.ports.live import Live
from axon.ports.queue import Lanes
from axon.ports.store import TurnStore
from axon.runtime.clock import Clock
from axon.telemetry.engine_report import WorkerLabels
from axon.telemetry.metrics import Metrics
from axon.text.tokenizer import Tokenizer
from axon.worker.adapters import AdapterFolders, Fetch
from axon.worker.child.engine import Engine
from axon.worker.child.supervisor import Supervisor
from axon.worker.claims import Claims
from axon.worker.config import WorkerConfig
from axon.worker.emit import Emitter
from axon.worker.erasing import Erasing, Kept
from axon.worker.identity import Identity
from axon.worker.intake import Intake
from axon.worker.job.hands import Hands
from axon.worker.job.pacing import Pacing, Tickets
from axon.worker.job.progress import Progress
from axon.worker.job.trials import Trials
from axon.worker.lease import make_lease
from axon.worker.lifeline import Lifeline
from axon.worker.peers.handover import leaving
from axon.worker.peers.load import measure_free_slots, measure_load
from axon.worker.peers.passing import Passing
from axon.worker.peers.residency import Residency
from axon.worker.peers.versions import Versions
from axon.worker.queue.parked import Parked
from axon.worker.queue.taking import Taking
from axon.worker.reporting import Reporting
from axon.worker.watching import Watching

_RELEASE_TIMEOUT_S = 5.0
_POLL_S = 0.05

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
        letter: str = "",
        letters: Callable[[str], str | None] = lambda version: None,
        neighbours: Callable[[], Collection[str]] = tuple,
        zone: str = "",
        kept: Kept | None = None,
        fetch_adapter: Fetch | None = None,
        restarted_at: float = 0.0,
    ) -> None:
        """``residences``: where the worker records whose KV blocks it holds, to be offered their next turns.

        ``tickets``: admission, which is told what the jobs use of their tenants' limits.

        ``letter``: that of the worker's version in the names of lanes; ``letters`` returns a version's, None for one
        that is not known.

        ``neighbours`` returns the pools of other deployments whose engines share this one's cores.

        ``kept``: where erasures are noted, for an engine that keeps copies of blocks outside its device.

        ``fetch_adapter``: fetches the LoRA adapters that jobs name.

        ``restarted_at``: jobs that were accepted before this Unix time have come through a restart of the server.
        """
        self._config, self._clock, self._zone = config, clock, zone
        incarnation = f"worker-{uuid.uuid4().hex[:12]}"
        me = self.identity = Identity(
            deployment=deployment, incarnation=incarnation, name=name, pool=config.pool, letter=letter
        )
        hands = self.hands = Hands(Trials(strike_limit=config.strike_limit))
        parked = self._parked = Parked()
        liveness = Liveness(live.leases, clock, lease_s=config.lease_s, wakeups=live.wakeups)
        self._lifeline = Lifeline(incarnation, live.wakeups)
        lease = self._lease = make_lease(incarnation, live.leases, liveness, config, clock)
        own_lane = me.name if residences else ""
        taking = self._taking = Taking(
            *(me, hands),
            num_lanes=num_lanes,
            own_lane=own_lane,
            queue=queue,
            live=live,
            clock=clock,
            metrics=metrics,
            neighbours=neighbours,
        )
        supervisor = self._supervisor = Supervisor(
            hands=hands,
            make_engine=make_engine,
            charge=taking.sharing.charge,
            worked=taking.sharing.worked,
            config=config,
            clock=clock,
            metrics=metrics,
            who=lambda: self.labels,
            adapters=(adapters := AdapterFolders(fetch_adapter, clock, timeout_s=config.adapter_timeout_s)),
        )
        self._adapters = adapters
        self._progress = Progress(hands, journal, every_s=config.checkpoint_s)
        paced = metrics.turns.paced.labels(deployment)
        pacing = self._pacing = Pacing(hands, lease, tickets, clock=clock, paced=paced) if tickets else None
        residency = self._residency = Residency(residences, me, clock) if residences else None
        passing = self._passing = Passing(
            me, hands, parked, supervisor, taking, queue=queue, live=live, config=config, clock=clock, metrics=metrics
        )
        claims = self._claims = Claims(
            incarnation,
            lease,
            liveness,
            tokenizer,
            clock,
            queue=queue,
            live=live,
            turns=turns,
            ending=ending,
            reader_grace_s=reader_grace_s,
            checkpoint_s=config.checkpoint_s,
            metrics=metrics,
            name=me.name,
            restarted_at=restarted_at,
        )
        versions = Versions(live.presences, me, clock)
        intake = self._intake = Intake(
            me, hands, parked, claims, pacing, passing, versions, letters, queue=queue, clock=clock, metrics=metrics
        )
        self._emitter = Emitter(
            hands,
            parked,
            residency,
            claims.restore,
            log=live.log,
            queue=queue,
            ending=ending,
            metrics=metrics,
            ended=lambda turn: supervisor.report.ended(turn),
            gather_s=config.gather_s,
        )
        self._reporting = Reporting(lambda: self.labels, parked, lease, metrics, clock, pool=config.pool)
        self._erasing = Erasing(supervisor, kept, live.wakeups, clock) if kept else None
        self._watching = Watching(hands, parked, intake, supervisor, passing, live=live, liveness=liveness, clock=clock)

    async def open(self) -> Ready:
        """Takes the lease, declares the lanes and starts the engine."""
        await self._lease.open()
        await self._taking.open()
        ready = await self._supervisor.open()
        self._claims.ready_at = self._clock.now()
        self.hands.slots = ready.max_sequences
        if self._residency is not None:
            self._residency.block_size = ready.block_size
        return ready

    async def run(self) -> None:
        """Works until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._lease.run())
            tasks.create_task(self._lifeline.run())
            tasks.create_task(self._taking.listen())
            tasks.create_task(self._taking.look())
            tasks.create_task(self._taking.run(self._intake.start))
            tasks.create_task(self._taking.sharing.run())
            tasks.create_task(self._supervisor.run(self._passing.scatter, self._intake.replay))
            tasks.create_task(self._watching.run())
            tasks.create_task(self._watching.listen())
            tasks.create_task(self._emitter.run())
            tasks.create_task(self._progress.run())
            tasks.create_task(self._reporting.run())
            tasks.create_task(self._adapters.run())
            if self._pacing is not None:
                tasks.create_task(self._pacing.run())
            if self._erasing is not None:
                tasks.create_task(self._erasing.run())
                tasks.create_task(self._erasing.listen())

    async def drain(self, timeout_s: float, *, empty_queue: bool = False, hand_over: bool = True) -> bool:
        """Lets jobs end here or, after ``linger_s``, at another worker; True when none is left.

        ``empty_queue``: no other worker would run what waits in the lanes, so it is run as well. Without ``hand_over``
        every job ends here, for a process whose own gateway its readers are connected to.
        """
        hands, passing, name = self.hands, self._passing, self.identity.name
        num_given = passing.num_given
        _logger.info("worker.draining", worker=name, turns=len(hands.running))
        if not empty_queue:
            await self._close_intake()
        began = self._clock.monotonic()
        try:
            async with asyncio.timeout(timeout_s):
                # Polled: no queue tells when it has become empty.
                while hands.running or self._intake.is_claiming or (empty_queue and await self._taking.num_waiting()):
                    if hand_over and not empty_queue and self._clock.monotonic() - began >= self._config.linger_s:
                        await passing.hand_over(leaving)
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            pass  # what is left is released by ``aclose``
        finally:
            num_given = passing.num_given - num_given
            _logger.info("worker.drained", worker=name, handed_over=num_given, left=len(hands.running))
        return not hands.running

    async def _close_intake(self) -> None:
        """Takes nothing more, and returns the parked deliveries to the queue."""
        self.hands.is_closed = True
        for delivery in self._parked.take():
            await self._intake.start(delivery)

    async def aclose(self) -> None:
        """Gives up what the worker still holds, so that another worker, or the next start, goes on at once."""
        try:
            await _in_time(self._passing.release_all())
        finally:
            try:
                await _in_time(self._lease.aclose())
            finally:
                await self._supervisor.aclose()
        _logger.info("worker.stopped", worker=self.identity.name)

    @property
    def labels(self) -> WorkerLabels:
        """The labels of its metrics; the version is known when the engine is up."""
        me = self.identity
        return WorkerLabels(me.deployment, me.version, me.name, self._zone)

    @property
    def jobs(self) -> Sequence[Job]:
        """The jobs that have a slot or wait for one."""
        return self.hands.jobs

    @property
    def engine_pid(self) -> int | None:
        """The process id of the present engine; a restart changes it."""
        return self._supervisor.engine_pid

    async def profile_engine(self, kind: str, seconds: float) -> bytes:
        """Records a profile of the present engine's process, packed as in ``axon.profiling``."""
        return await self._supervisor.profile(kind, seconds)

    @property
    def load(self) -> Load:
        """The worker's present load."""
        return measure_load(self.hands, self._supervisor, self._clock.monotonic())

    @property
    def free_slots(self) -> int:
        """``free_slots`` of the load, which is asked more often than the rest."""
        return measure_free_slots(self.hands, self._supervisor, self._clock.monotonic())


async def _in_time(closing: Awaitable[None]) -> None:
    try:
        async with asyncio.timeout(_RELEASE_TIMEOUT_S):
            await closing
    except (AxonError, TimeoutError) as error:
        _logger.warning("worker.not_released", error=str(error), next="its leases and connections lapse")
