"""The way in: idempotency, room, admission, and then the caller's own prompt and job. Knows no HTTP.

async with opening.admitted(ask) as entry:        a place is held; a repeated request gets the first one's job
    if entry.is_new:
        await entry.accept(make_job(…))           journal and queue confirm: the turn is accepted
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from axon.admission.admission import Admission, Entrant
from axon.admission.meters import Meters
from axon.admission.quota import Quota
from axon.dispatch.dispatch import Dispatch
from axon.dispatch.idempotency import First, Idempotency
from axon.domain.ids import new_id
from axon.domain.storage import Stored
from axon.domain.tenant import Terms
from axon.gateway.turn.ask import Ask
from axon.gateway.turn.entry import Admitted, Entry
from axon.gateway.turn.twins import Twins
from axon.runtime.clock import Clock
from axon.runtime.failpoints import failpoint


class Opening:
    """Opens turns. A turn that it refuses, or that its caller gives up, leaves no trace."""

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
        self._admission, self._dispatch = admission, dispatch
        self._clock, self._quota = clock, quota
        self._twins = Twins(idempotency, admission, dispatch, lambda prefix: new_id(prefix, clock.now()))

    @asynccontextmanager
    async def admitted(self, ask: Ask) -> AsyncIterator[Entry]:
        """Holds a place for a turn while its job is made, and gives it back when the job is not accepted."""
        found = await self._twins.first(ask)
        if isinstance(found, First):
            entry = Entry(ask, found.job.id, self._clock.now())
            entry.repeat(await self._twins.again(found))
            yield entry
            return
        async with self._room(ask):
            entry = await self._admit(ask, found)
            failpoint("opening.admitted")
            try:
                yield entry
            finally:
                if not entry.is_accepted:
                    await entry.withdraw()

    async def count(self, tenant: str, terms: Terms, meters: Meters) -> None:
        """Takes one request from the tenant's bucket; raises when it is empty."""
        await self._admission.count(tenant, new_id("count_", self._clock.now()), terms, meters)

    def _room(self, ask: Ask) -> AbstractAsyncContextManager[object]:
        """Room in the tenant's quota for a turn that is kept."""
        if self._quota is None or not ask.keeps:
            return nullcontext()
        return self._quota.room(ask.tenant, ask.terms, Stored(num_bytes=ask.num_bytes, num_objects=1))

    async def _admit(self, ask: Ask, job_id: str) -> Entry:
        entrant = Entrant(
            job_id=job_id, tenant=ask.tenant, terms=ask.terms, tier=ask.tier, pool=ask.pool, num_bytes=ask.num_bytes
        )
        ticket = await self._admission.admit(entrant, ask.meters)
        admitted = Admitted(ticket, self._admission, self._dispatch, self._twins)
        return Entry(ask, job_id, self._clock.now(), admitted)
