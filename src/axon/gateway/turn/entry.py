"""A turn between admission and acceptance: it has a ticket, then a job, then it is accepted. Knows no HTTP."""

import contextlib
from dataclasses import dataclass, replace

from axon.admission.admission import Admission
from axon.admission.meters import Meters
from axon.admission.place import Place
from axon.admission.ticket import Ticket
from axon.dispatch.dispatch import Dispatch
from axon.domain.job import Job
from axon.domain.turn import Turn
from axon.errors import AxonError, Conflict
from axon.gateway.offers.offer import Offer
from axon.gateway.turn.ask import Ask, asked_at, entrant_of
from axon.gateway.turn.duplicates import Duplicates
from axon.runtime.clock import Clock
from axon.telemetry import logs


@dataclass(frozen=True, slots=True)
class Answering:
    """The version that is to answer a turn, with the deployment's offer that it is of."""

    offer: Offer
    version: str


class Entry:
    """One turn from admission to acceptance. A repeated request's entry has the first one's job and is not new."""

    found: Turn | None = None
    """The turn as a repeated request found it; None for a new turn."""
    is_drawn = True
    """Whether its session's bucket decides on its version; false for a turn that asks for a version by name."""
    is_first = True
    """Whether its session begins with it."""
    answering: Answering | None = None
    """What is to answer it, once that is decided."""
    publishing_at = 0.0
    """Unix time at which its job was published; 0 before."""

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
        """Whether the entry has an accepted job: its own, or that of an earlier request with its idempotency key."""
        return self._job is not None

    def repeat(self, first: Job) -> None:
        """Takes over the accepted job of an earlier request with the same idempotency key."""
        self._job, self.is_new = first, False
        logs.bind(**logs.about(first))

    async def accept(self, job: Job) -> None:
        """Accepts the job: reserves its tokens and has journal and queue confirm it. From then on it ends exactly once.

        If an earlier request with the same idempotency key was accepted meanwhile, the entry takes over its job.
        """
        assert self._admitted is not None, "a repeated request's job was accepted before"
        if self.ask.idempotency_key and (first := await self._admitted.duplicates.accepted(self.ask)):
            self.repeat(await self._admitted.duplicates.accept_again(first))
            return
        ticket = await self._admitted.reserve(job, self.ask.meters)
        if self.answering is not None:  # to render a prompt and to load a text side may have taken long
            self.answering.offer.check_open(self.answering.version)
        self.publishing_at = now = self._admitted.clock.now()
        job = replace(
            job,
            idempotency_key=self.ask.idempotency_key,
            body_digest=self.ask.body_digest,
            ticket=str(ticket),
            arrived=self.ask.arrived,
            loaded_s=max(0.0, now - job.created),
        )
        accepted = await self._admitted.dispatch.accept(job)
        self._job, self.is_new = accepted, accepted == job
        logs.bind(**logs.about(accepted))

    async def switch(self, place: Place) -> None:
        """Has the turn admitted at another place, on which its session is; raises if that is full."""
        assert self._admitted is not None, "a repeated request's job was accepted before"
        ask = asked_at(self.ask, place)
        await self._admitted.switch(ask, self.id)
        self.ask = ask

    async def twin(self) -> Job | None:
        """Returns the job that the log has under this entry's id and that is not cancelled, if any: a duplicate
        request's, or its own if its acceptance was not confirmed."""
        if self._admitted is None:
            return None
        try:
            first = await self._admitted.duplicates.accepted(self.ask)
        except Conflict:
            return None
        return first.job if first is not None and first.job.id == self.id else None

    async def withdraw(self) -> None:
        """Gives the ticket back, unless a duplicate request's turn has the same id and with it the ticket."""
        if self._admitted is not None and not await self._admitted.duplicates.have_id(self.ask, self.id):
            await self._admitted.withdraw(self.ask.tenant, self.id)


class Admitted:
    """The ticket of an entry, with the parts that take the ticket back or accept its job."""

    def __init__(
        self, ticket: Ticket, admission: Admission, dispatch: Dispatch, duplicates: Duplicates, clock: Clock
    ) -> None:
        self.dispatch, self.duplicates, self.clock = dispatch, duplicates, clock
        self._ticket, self._admission = ticket, admission

    async def reserve(self, job: Job, meters: Meters) -> Ticket:
        """Reserves the tokens that the job may use, and returns its ticket."""
        self._ticket = await self._admission.reserve(self._ticket, job, meters)
        return self._ticket

    async def switch(self, ask: Ask, job_id: str) -> None:
        """Moves the ticket to the place that is asked now."""
        self._ticket = await self._admission.switch(self._ticket, entrant_of(ask, job_id), ask.meters)

    async def withdraw(self, tenant: str, job_id: str) -> None:
        """Gives the ticket back; if admission does not answer, the ticket expires by itself."""
        with contextlib.suppress(AxonError):
            await self._admission.withdraw(self._ticket, tenant, job_id)
