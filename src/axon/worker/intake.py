"""A delivery's way in: claimed and taken into the worker's hands, parked, or left to others. Knows no engine."""

import structlog

from axon.domain.failure import Failure
from axon.domain.job import Job
from axon.domain.turn import TurnState
from axon.errors import AxonError
from axon.ports.queue import Delivery, Queue
from axon.runtime.clock import Clock
from axon.telemetry.metrics import Metrics
from axon.worker.claims import Busy, Claims
from axon.worker.identity import Identity
from axon.worker.job.hands import Hands
from axon.worker.job.pacing import Pacing
from axon.worker.job.running import Running
from axon.worker.peers.passing import Passing
from axon.worker.peers.versions import Versions
from axon.worker.queue.parked import Parked

_VERSION_GONE_S = 10.0
"""A version that no other worker has shown for this long is taken to be gone for good."""

_logger = structlog.get_logger("axon.worker")


class Intake:
    """``start`` for each delivery; ``replay`` for each job whose engine has died."""

    def __init__(
        self,
        identity: Identity,
        hands: Hands,
        parked: Parked,
        claims: Claims,
        pacing: Pacing | None,
        passing: Passing,
        versions: Versions,
        *,
        queue: Queue,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._identity, self._hands, self._parked = identity, hands, parked
        self._claims, self._pacing = claims, pacing
        self._passing, self._versions = passing, versions
        self._queue, self._clock, self._metrics = queue, clock, metrics
        self._claiming: set[str] = set()

    @property
    def is_claiming(self) -> bool:
        """Whether a claim is under way: its job is in nobody's hands yet."""
        return bool(self._claiming)

    async def start(self, delivery: Delivery) -> None:
        """Claims and runs the job; the delivery is parked when a service that must be asked is away."""
        try:
            if self._hands.is_closed:
                await self._queue.give_back(delivery)
            else:
                await self._claim(delivery)
        except AxonError as error:
            _logger.warning("claim.failed", lane=delivery.lane, error=str(error), next="parked and tried again")
            self._parked.add(delivery)

    async def _claim(self, delivery: Delivery) -> None:
        job = await self._claims.job(delivery)
        if job is None or await self._is_left_to_others(job, delivery):
            return
        if job.id in self._hands.running or job.id in self._claiming:
            self._parked.add(delivery)  # a second copy of a job that runs here
            return
        self._claiming.add(job.id)
        try:
            claimed = await self._claims.claim(job, delivery)
        finally:
            self._claiming.discard(job.id)
        match claimed:
            case Busy(owner=owner):
                self._parked.add(delivery, owner)
            case Running():
                self._metrics.queue_wait.observe(max(0.0, self._clock.now() - job.created))
                if not self._runs(job):
                    claimed.end(TurnState.FAILED, Failure.VERSION_GONE, "The model version it was asked of is gone.")
                self._pace(claimed)
                self._hands.take(claimed)

    def _runs(self, job: Job) -> bool:
        return self._identity.version in ("", job.version)

    async def _is_left_to_others(self, job: Job, delivery: Delivery) -> bool:
        """Whether a job of another version is not to be ended here: a worker has that version, or had it just now."""
        if self._runs(job):
            return False
        missed_s = await self._versions.missed_s(job.version)
        if missed_s is None:
            await self._passing.give_back(job, delivery)
            return True
        if missed_s < _VERSION_GONE_S:
            self._parked.add(delivery)
            return True
        return False

    async def replay(self, running: Running) -> None:
        """Claims a job of ours again for a new attempt, which goes on from what the log has of it."""
        if running.terminal is not None:
            return
        claimed: Running | Busy | None
        try:
            claimed = await self._claims.claim(running.job, running.delivery)
        except AxonError as error:
            _logger.warning("claim.failed", turn=running.job.id, error=str(error), next="parked and tried again")
            claimed = Busy()
        if not self._hands.holds(running):
            return  # it ended meanwhile
        match claimed:
            case Running():
                self._pace(claimed)
                self._hands.replace(running, claimed)
            case Busy():
                self._hands.forget(running)
                self._parked.add(running.delivery)
            case None:
                self._hands.forget(running)

    def _pace(self, running: Running) -> None:
        if self._pacing is not None:
            self._pacing.begin(running)
