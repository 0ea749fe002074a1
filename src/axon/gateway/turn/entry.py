"""A turn on its way in: it has a place, then a job, then it is accepted. Knows no HTTP and makes no job."""

import contextlib
from dataclasses import replace

from axon.admission.admission import Admission
from axon.admission.meters import Meters
from axon.admission.ticket import Ticket
from axon.dispatch.dispatch import Dispatch
from axon.domain.job import Job
from axon.domain.turn import Turn
from axon.errors import AxonError
from axon.gateway.turn.ask import Ask
from axon.gateway.turn.twins import Twins


class Entry:
    """One turn's entry. A repeated request's entry has the first one's job already and is not new."""

    found: Turn | None = None
    """The turn as a repeated request found it."""

    def __init__(self, ask: Ask, job_id: str, now: float, admitted: "Admitted | None" = None) -> None:
        self.ask, self.id, self.now = ask, job_id, now
        self.is_new = admitted is not None
        self._admitted = admitted
        self._job: Job | None = None

    @property
    def job(self) -> Job:
        """The accepted job."""
        assert self._job is not None, "the entry was left without an accepted job"
        return self._job

    @property
    def is_accepted(self) -> bool:
        return self._job is not None

    def repeat(self, first: Job) -> None:
        """Takes the job that an earlier request was accepted with."""
        self._job, self.is_new = first, False

    async def accept(self, job: Job) -> None:
        """Accepts the job: from here on it is answered exactly once."""
        assert self._admitted is not None, "a repeated request's job was accepted before"
        if first := await self._admitted.twins.twin(self.ask):
            self.repeat(await self._admitted.twins.again(first))
            return
        job = replace(job, idempotency_key=self.ask.idempotency_key, body_digest=self.ask.body_digest)
        job = await self._admitted.reserved(job, self.ask.meters)
        accepted = await self._admitted.dispatch.accept(job)
        self._job, self.is_new = accepted, accepted == job

    async def withdraw(self) -> None:
        """Gives the ticket back, unless a twin's turn has the id and with it the ticket."""
        if self._admitted is not None and not await self._admitted.twins.has_id(self.ask, self.id):
            await self._admitted.withdraw(self.ask.tenant, self.id)


class Admitted:
    """What an entry holds while it has no job: its ticket, and who takes both."""

    def __init__(self, ticket: Ticket, admission: Admission, dispatch: Dispatch, twins: Twins) -> None:
        self.dispatch, self.twins = dispatch, twins
        self._ticket, self._admission = ticket, admission

    async def reserved(self, job: Job, meters: Meters) -> Job:
        """The job with its ticket, once the tokens that it may take are set aside."""
        self._ticket = await self._admission.reserve(self._ticket, job, meters)
        return replace(job, ticket=str(self._ticket))

    async def withdraw(self, tenant: str, job_id: str) -> None:
        """Gives the ticket back; one that cannot be given back now expires."""
        with contextlib.suppress(AxonError):
            await self._admission.withdraw(self._ticket, tenant, job_id)
