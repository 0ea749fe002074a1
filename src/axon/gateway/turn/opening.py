"""Opens a turn: idempotency, storage quota and admission, then the caller's prompt and job. Knows no HTTP.

async with opening.admitted(ask) as entry:        the turn has a ticket; a repeated request has the first one's job
    if entry.is_new:
        await entry.accept(make_job(…))           journal and queue confirm: the turn is accepted
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial

from axon.admission.admission import Admission
from axon.admission.meters import Meters
from axon.admission.quota import Quota
from axon.dispatch.dispatch import Dispatch
from axon.dispatch.idempotency import First, Idempotency
from axon.domain.ids import new_id
from axon.domain.tenants.storage import Stored
from axon.domain.tenants.tenant import Terms
from axon.gateway.turn.ask import Ask, asked_at, entrant_of
from axon.gateway.turn.duplicates import Duplicates
from axon.gateway.turn.entry import Admitted, Entry
from axon.runtime.clock import Clock
from axon.runtime.failpoints import failpoint


class Opening:
    """Opens turns. A turn that is refused, or that the calling code gives up, leaves no trace."""

    def __init__(
        self,
        admission: Admission,
        dispatch: Dispatch,
        idempotency: Idempotency,
        clock: Clock,
        *,
        quota: Quota | None = None,
    ) -> None:
        """Stores its parts; without a ``quota`` a tenant may store without limit."""
        self._admission, self._dispatch = admission, dispatch
        self._clock, self._quota = clock, quota
        self._duplicates = Duplicates(idempotency, admission, dispatch)

    @asynccontextmanager
    async def admitted(self, ask: Ask) -> AsyncIterator[Entry]:
        """Admits a turn and yields its entry; gives the ticket back unless the job is accepted inside the block."""
        found: First | str = new_id(ask.prefix, self._clock.now())
        if ask.idempotency_key:
            found = await self._duplicates.first(ask)
        if isinstance(found, First):
            entry = Entry(ask, found.job.id, self._clock.now())
            entry.repeat(await self._duplicates.accept_again(found))
            yield entry
            return
        async with self._storage(ask):
            entry = await self._admit(ask, found)
            failpoint("opening.admitted")
            try:
                yield entry
            finally:
                if not entry.is_accepted:
                    await entry.withdraw()

    async def count(self, tenant: str, terms: Terms, meters: Meters) -> None:
        """Takes one request from the tenant's token bucket; raises ``LimitReached`` if it is empty."""
        await self._admission.count(tenant, new_id("count_", self._clock.now()), terms, meters)

    def _storage(self, ask: Ask) -> AbstractAsyncContextManager[object]:
        """Reserves room in the tenant's storage quota for a turn that is stored."""
        if self._quota is None or not ask.keeps:
            return nullcontext()
        return self._quota.room(ask.tenant, ask.terms, Stored(num_bytes=ask.num_bytes, num_objects=1))

    async def _admit(self, ask: Ask, job_id: str) -> Entry:
        """Asks admission for a ticket and returns the turn's entry; raises if the turn is refused."""
        entrant = entrant_of(ask, job_id)
        is_shared = partial(self._duplicates.have_id, ask, job_id)
        ticket = await self._admission.admit(entrant, ask.meters, is_shared=is_shared)
        admitted = Admitted(ticket, self._admission, self._dispatch, self._duplicates, self._clock)
        place = next(each for each in entrant.places if each.fleet == ticket.fleet)
        return Entry(asked_at(ask, place), job_id, self._clock.now(), admitted)
