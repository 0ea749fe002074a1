"""May this turn enter? Buckets of requests and tokens, and a bounded backlog, per key and in all. Knows no prompt."""

from dataclasses import dataclass

from axon.admission.config import AdmissionConfig
from axon.admission.meters import Meters
from axon.domain.job import Job
from axon.errors import AxonError, LimitReached, Overloaded
from axon.ports.live import Buckets

_EVERYBODY = "backlog"
_BACKLOG_RETRY_S = 1.0
_NO_LIMIT = 1 << 30


@dataclass(frozen=True, slots=True)
class Ticket:
    """Admission's yes: which key pays, and the tokens that are set aside for the answer."""

    key_id: str
    reserved: int = 0

    def __str__(self) -> str:
        return f"{self.key_id}:{self.reserved}"

    @classmethod
    def parse(cls, text: str) -> "Ticket":
        """The ticket that a job carries."""
        key_id, _, reserved = text.partition(":")
        return cls(key_id, int(reserved or 0))


class Admission:
    """Hands out tickets and takes them back, each once: by the job's id."""

    def __init__(self, buckets: Buckets, config: AdmissionConfig, *, ticket_ttl_s: float) -> None:
        self._buckets = buckets
        self._config = config
        self._ticket_ttl_s = ticket_ttl_s

    async def admit(self, key_id: str, job_id: str, meters: Meters) -> Ticket:
        """A ticket for the job, or a refusal that says when to come back."""
        await self.count(key_id, meters)
        if not await self._enter(_crowd(key_id), job_id, self._config.backlog_per_key):
            raise LimitReached(
                f"This API key has {self._config.backlog_per_key} requests queued or running, which is its limit.",
                code="backlog_full",
                retry_after_s=_BACKLOG_RETRY_S,
            )
        try:
            if await self._enter(_EVERYBODY, job_id, self._config.backlog_total):
                return Ticket(key_id)
            raise Overloaded(retry_after_s=_BACKLOG_RETRY_S)
        except AxonError:
            await self._buckets.leave(_crowd(key_id), job_id)
            raise

    async def reserve(self, ticket: Ticket, job_id: str, tokens: int, meters: Meters) -> Ticket:
        """Sets aside what the turn may cost, as far as the bucket is deep."""
        per_minute = self._config.tokens_per_minute
        if per_minute <= 0:
            return ticket
        wanted = min(tokens, int(per_minute))
        taken = await self._buckets.take(
            _tokens(ticket.key_id), wanted, capacity=per_minute, refill_per_s=per_minute / 60
        )
        meters.note("tokens", taken, per_minute=per_minute)
        if not taken.granted:
            raise LimitReached(
                f"Rate limit reached for this API key: {per_minute:g} tokens per minute.",
                retry_after_s=taken.retry_after_s,
            )
        await self._enter(_reserving(ticket.key_id), job_id, _NO_LIMIT)
        return Ticket(ticket.key_id, wanted)

    async def settle(self, job: Job, used: int) -> None:
        """The job has ended with so many tokens used: what was set aside too much goes back, once."""
        await self.withdraw(Ticket.parse(job.ticket), job.id, used=used)

    async def withdraw(self, ticket: Ticket, job_id: str, *, used: int = 0) -> None:
        """The ticket is not used any more; twice is harmless."""
        await self._buckets.leave(_crowd(ticket.key_id), job_id)
        await self._buckets.leave(_EVERYBODY, job_id)
        if not ticket.reserved or not await self._buckets.leave(_reserving(ticket.key_id), job_id):
            return  # nothing is set aside for it, or no longer
        if ticket.reserved > used:
            unused = ticket.reserved - used
            await self._buckets.give(_tokens(ticket.key_id), unused, capacity=self._config.tokens_per_minute)

    async def readmit(self, job: Job) -> None:
        """Counts a job that is accepted once more; never refuses. Its tokens are set aside again if they were not."""
        ticket = Ticket.parse(job.ticket)
        if ticket.reserved:
            if not await self._buckets.leave(_reserving(ticket.key_id), job.id):
                per_minute = self._config.tokens_per_minute
                await self._buckets.take(
                    _tokens(ticket.key_id), ticket.reserved, capacity=per_minute, refill_per_s=per_minute / 60
                )
            await self._enter(_reserving(ticket.key_id), job.id, _NO_LIMIT)
        await self._enter(_crowd(ticket.key_id), job.id, _NO_LIMIT)
        await self._enter(_EVERYBODY, job.id, _NO_LIMIT)

    async def count(self, key_id: str, meters: Meters) -> None:
        """One request of the key, or a refusal that says when to come back."""
        per_minute = self._config.requests_per_minute
        if per_minute <= 0:
            return
        taken = await self._buckets.take(f"requests/{key_id}", 1, capacity=per_minute, refill_per_s=per_minute / 60)
        meters.note("requests", taken, per_minute=per_minute)
        if not taken.granted:
            raise LimitReached(
                f"Rate limit reached for this API key: {per_minute:g} requests per minute.",
                retry_after_s=taken.retry_after_s,
            )

    async def _enter(self, crowd: str, job_id: str, limit: int) -> bool:
        return await self._buckets.enter(crowd, job_id, limit=limit, ttl_s=self._ticket_ttl_s)


def _crowd(key_id: str) -> str:
    return f"backlog/{key_id}"


def _reserving(key_id: str) -> str:
    """The jobs for which tokens are set aside."""
    return f"reserving/{key_id}"


def _tokens(key_id: str) -> str:
    return f"tokens/{key_id}"
