"""From an identified ask to an accepted turn: idempotency, admission, prompt, dispatch. Knows no HTTP."""

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from axon.admission.admission import Admission, Entrant
from axon.admission.meters import Meters
from axon.admission.quota import Quota
from axon.admission.ticket import Ticket
from axon.dispatch.dispatch import Dispatch
from axon.dispatch.idempotency import First, Idempotency
from axon.domain.ids import new_id
from axon.domain.job import Job
from axon.domain.storage import Stored
from axon.domain.tenant import Terms, Tier
from axon.errors import AxonError, Conflict
from axon.runtime.clock import Clock
from axon.runtime.failpoints import failpoint

MakeJob = Callable[[str, float], Awaitable[Job]]
"""Takes the id and the time; renders the prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Who asks, and on which terms."""

    prefix: str
    """Of the turn's id; tells the routes apart."""
    tenant: str
    terms: Terms = field(default_factory=Terms)
    tier: Tier = Tier.DEFAULT
    pool: str = ""
    num_bytes: int = 0
    """Of the request, to guess at its prompt before there is one."""
    keeps: bool = False
    """The turn is retained: it needs room in the tenant's quota of what is stored."""
    idempotency_key: str = ""
    body_digest: str = ""
    meters: Meters = field(default_factory=Meters)
    """What is left of the tenant's limits; filled in on the way."""


@dataclass(frozen=True, slots=True)
class Opened:
    """An accepted job; ``is_new`` unless it was opened before, under the same key."""

    job: Job
    is_new: bool


class Opening:
    """Opens turns; what it refuses, it leaves no trace of."""

    def __init__(
        self,
        admission: Admission,
        dispatch: Dispatch,
        idempotency: Idempotency,
        clock: Clock,
        *,
        quota: Quota | None = None,
    ) -> None:
        """Without a ``quota`` a tenant may store without limit."""
        self._admission, self._dispatch, self._idempotency = admission, dispatch, idempotency
        self._clock, self._quota = clock, quota

    async def open(self, ask: Ask, make_job: MakeJob) -> Opened:
        """Returns the accepted job: from here on it is answered exactly once. A repeated ask gets the first one's."""
        if not ask.idempotency_key:
            return await self._enter(ask, new_id(ask.prefix, self._clock.now()), make_job)
        found = await self._resolve(ask)
        if isinstance(found, str):
            return await self._enter(ask, found, make_job)
        return await self._again(found)

    async def count(self, tenant: str, terms: Terms, meters: Meters) -> None:
        """Takes one request from the tenant's bucket; raises when it is empty."""
        await self._admission.count(tenant, new_id("count_", self._clock.now()), terms, meters)

    async def _resolve(self, ask: Ask) -> str | First:
        return await self._idempotency.resolve(
            prefix=ask.prefix, tenant=ask.tenant, key=ask.idempotency_key, body_digest=ask.body_digest
        )

    async def _again(self, first: First) -> Opened:
        """Accepts once more what may not have been accepted to the end."""
        if not first.claimed:
            await self._admission.readmit(first.job)
            await self._dispatch.accept(first.job, again=True)
        return Opened(first.job, is_new=False)

    async def _enter(self, ask: Ask, job_id: str, make_job: MakeJob) -> Opened:
        """Admits what there is room for, where it is to be stored."""
        if self._quota is None or not ask.keeps:
            return await self._admit(ask, job_id, make_job)
        async with self._quota.room(ask.tenant, ask.terms, Stored(num_bytes=ask.num_bytes, num_objects=1)):
            return await self._admit(ask, job_id, make_job)

    async def _admit(self, ask: Ask, job_id: str, make_job: MakeJob) -> Opened:
        entrant = Entrant(
            job_id=job_id, tenant=ask.tenant, terms=ask.terms, tier=ask.tier, pool=ask.pool, num_bytes=ask.num_bytes
        )
        ticket = await self._admission.admit(entrant, ask.meters)
        failpoint("opening.admitted")
        try:
            job = await make_job(job_id, self._clock.now())
            if first := await self._twin(ask):
                return await self._again(first)
            ticket = await self._admission.reserve(ticket, job, ask.meters)
            job = replace(job, ticket=str(ticket), idempotency_key=ask.idempotency_key, body_digest=ask.body_digest)
            accepted = await self._dispatch.accept(job)
        except BaseException:
            if not await self._stands(ask, job_id):
                await self._withdraw(ticket, ask.tenant, job_id)
            raise
        return Opened(accepted, is_new=accepted == job)

    async def _twin(self, ask: Ask) -> First | None:
        """The same request, accepted under its key and id while this one was being made: it must not be undone.

        ``Conflict`` when the key went to another request meanwhile.
        """
        if not ask.idempotency_key:
            return None
        try:
            found = await self._resolve(ask)
        except Conflict:
            raise
        except AxonError:
            return None  # the log tells who was first, when it can
        return found if isinstance(found, First) else None

    async def _stands(self, ask: Ask, job_id: str) -> bool:
        """Whether a twin's turn, of whatever body, has the id, and with it the ticket."""
        try:
            first = await self._twin(ask)
        except Conflict:
            return True
        return first is not None and first.job.id == job_id

    async def _withdraw(self, ticket: Ticket, tenant: str, job_id: str) -> None:
        with contextlib.suppress(AxonError):
            await self._admission.withdraw(ticket, tenant, job_id)
