"""A delivery's way in: claimed and taken into the worker's hands, parked, or left to others. Knows no engine.

A job of another version, or one that needs a later release, is never ended here: control does that, when nobody can
ever run it.
"""

from collections.abc import Callable

import structlog

from axon.domain.fairness.lane import with_letter
from axon.domain.job import Job
from axon.domain.job_body import Beyond
from axon.errors import AxonError
from axon.ports.queue import Delivery, Queue
from axon.runtime.clock import Clock
from axon.telemetry.logs import about
from axon.telemetry.metrics import Metrics
from axon.telemetry.turn_labels import turn_labels
from axon.worker.claims import Busy, Claims
from axon.worker.identity import Identity
from axon.worker.job.hands import Hands
from axon.worker.job.pacing import Pacing
from axon.worker.job.running import Running
from axon.worker.peers.passing import Passing
from axon.worker.peers.versions import Versions
from axon.worker.queue.parked import Parked
from axon.worker.queue.skipped import Skipped

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
        letters: Callable[[str], str | None],
        *,
        queue: Queue,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        """``letters`` returns the letter of a version of the deployment; None for one that is not known."""
        self._identity, self._hands, self._parked = identity, hands, parked
        self._claims, self._pacing = claims, pacing
        self._passing, self._versions = passing, versions
        self._queue, self._clock, self._metrics = queue, clock, metrics
        self._letters, self._skipped = letters, Skipped()
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
        if isinstance(job, Beyond):
            await self._look_past(job, delivery)
            return
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
                waited_s = max(0.0, self._clock.now() - job.created)
                self._metrics.turns.queue_wait.labels(*turn_labels(job)).observe(waited_s)
                if claimed.lost is not None:
                    self._metrics.streams.failovers.labels(cause=claimed.lost[0]).inc()
                self._pace(claimed)
                self._hands.take(claimed)

    async def _look_past(self, job: Beyond, delivery: Delivery) -> None:
        """Leaves a job to workers of a later release: given back, and for a few seconds kept out of the way when it
        comes again, so that this worker gets at the jobs behind it."""
        now = self._clock.monotonic()
        if self._skipped.has(job.job_id, now):
            self._parked.add(delivery)
            return
        _logger.warning("job.beyond", turn=job.job_id, why=job.why, next="left to workers of a later release")
        self._skipped.add(job.job_id, now)
        await self._passing.leave(delivery)

    async def _is_left_to_others(self, job: Job, delivery: Delivery) -> bool:
        """Whether a job is of another version and has not ended: it goes to that version's lane, or back to the lane
        while a worker there has the version, or waits here until control knows what becomes of it."""
        if self._identity.runs(job.version) or await self._claims.has_ended(job):
            return False
        if (letter := self._letters(job.version)) is not None:
            lane = with_letter(delivery.lane, self._identity.deployment, letter)
            if lane != delivery.lane:
                await self._passing.forward(job, delivery, lane)
                return True
        if await self._versions.missed_s(job.version) is None:
            await self._passing.give_back(job, delivery)
        else:
            self._parked.add(delivery)
        return True

    async def replay(self, running: Running) -> None:
        """Claims a job of ours again for a new attempt, which goes on from what the log has of it."""
        if running.terminal is not None:
            return
        claimed: Running | Busy | None
        try:
            crashes = self._hands.trials.crashes(running.job.id)
            claimed = await self._claims.again(running, crashes=crashes)
        except AxonError as error:
            _logger.warning(
                "claim.failed", **about(running.job, running.attempt), error=str(error), next="parked and tried again"
            )
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
