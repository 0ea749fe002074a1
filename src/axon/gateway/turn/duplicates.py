"""Duplicate requests under one idempotency key: finds the first one and its job. Knows no HTTP."""

from axon.admission.admission import Admission
from axon.dispatch.dispatch import Dispatch
from axon.dispatch.idempotency import First, Idempotency
from axon.domain.job import Job
from axon.errors import AxonError, Conflict
from axon.gateway.turn.ask import Ask


class Duplicates:
    """Finds the first of several requests with one key, and finishes its acceptance if that may have been cut short."""

    def __init__(self, idempotency: Idempotency, admission: Admission, dispatch: Dispatch) -> None:
        self._idempotency, self._admission, self._dispatch = idempotency, admission, dispatch

    async def first(self, ask: Ask) -> First | str:
        """Returns the first request with this one's key; if this is the first, returns the id of its new turn."""
        return await self._idempotency.resolve(
            prefix=ask.prefix, tenant=ask.tenant, key=ask.idempotency_key, body_digest=ask.body_digest
        )

    async def accept_again(self, first: First) -> Job:
        """Returns the first request's job, accepted again unless a worker has claimed it, which proves acceptance.

        Acceptance is idempotent; the process that received the first request may have died before it was done.
        """
        if not first.claimed:
            await self._admission.readmit(first.job)
            await self._dispatch.accept(first.job, again=True)
        else:
            await self._dispatch.confirm(first.job)
        return first.job

    async def accepted(self, ask: Ask) -> First | None:
        """Returns the same request if it was accepted under this key while this one's job was being made, else None.

        Raises ``Conflict`` if a request with another body took the key meanwhile.
        """
        if not ask.idempotency_key:
            return None
        try:
            found = await self.first(ask)
        except Conflict:
            raise
        except AxonError:
            return None  # the log knows which request was first, and accepting the job asks it
        return found if isinstance(found, First) else None

    async def have_id(self, ask: Ask, job_id: str) -> bool:
        """Whether a duplicate request's turn, with this body or another, has this id."""
        try:
            first = await self.accepted(ask)
        except Conflict:
            return True
        return first is not None and first.job.id == job_id
