"""May this turn enter? A request bucket and a bounded backlog, per key and in all. Knows no prompt."""

from axon.admission.config import AdmissionConfig
from axon.domain.job import Job
from axon.errors import LimitReached, Overloaded
from axon.ports.live import Buckets

_EVERYBODY = "backlog"
_BACKLOG_RETRY_S = 1.0


class Admission:
    """Hands out tickets. A ticket is the id of the key that pays; the job's id makes it unique."""

    def __init__(self, buckets: Buckets, config: AdmissionConfig, *, ticket_ttl_s: float) -> None:
        self._buckets = buckets
        self._config = config
        self._ticket_ttl_s = ticket_ttl_s

    async def admit(self, key_id: str, job_id: str) -> str:
        """A ticket for the job, or a refusal that says when to come back."""
        await self._take_request(key_id)
        own, everybody = _crowd(key_id), _EVERYBODY
        if not await self._enter(own, job_id, self._config.backlog_per_key):
            raise LimitReached(
                f"This API key has {self._config.backlog_per_key} requests queued or running, which is its limit.",
                code="backlog_full",
                retry_after_s=_BACKLOG_RETRY_S,
            )
        if not await self._enter(everybody, job_id, self._config.backlog_total):
            await self._buckets.leave(own, job_id)
            raise Overloaded(retry_after_s=_BACKLOG_RETRY_S)
        return key_id

    async def settle(self, job: Job) -> None:
        """The job has ended, or was never accepted; twice is harmless."""
        await self.withdraw(job.ticket, job.id)

    async def withdraw(self, ticket: str, job_id: str) -> None:
        """The ticket is not used any more."""
        await self._buckets.leave(_crowd(ticket), job_id)
        await self._buckets.leave(_EVERYBODY, job_id)

    async def readmit(self, job: Job) -> None:
        """Counts a job that was accepted by a process that is gone; never refuses."""
        await self._enter(_crowd(job.ticket), job.id, _NO_LIMIT)
        await self._enter(_EVERYBODY, job.id, _NO_LIMIT)

    async def _take_request(self, key_id: str) -> None:
        per_minute = self._config.requests_per_minute
        if per_minute <= 0:
            return
        taken = await self._buckets.take(f"requests/{key_id}", 1, capacity=per_minute, refill_per_s=per_minute / 60)
        if not taken.granted:
            raise LimitReached(
                f"Rate limit reached for this API key: {per_minute:g} requests per minute.",
                retry_after_s=taken.retry_after_s,
            )

    async def _enter(self, crowd: str, job_id: str, limit: int) -> bool:
        return await self._buckets.enter(crowd, job_id, limit=limit, ttl_s=self._ticket_ttl_s)


_NO_LIMIT = 1 << 30


def _crowd(key_id: str) -> str:
    return f"backlog/{key_id}"
