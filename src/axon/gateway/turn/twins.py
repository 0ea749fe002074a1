"""Requests under one idempotency key: which one was first, and what a repeated one gets. Knows no HTTP."""

from collections.abc import Callable

from axon.admission.admission import Admission
from axon.dispatch.dispatch import Dispatch
from axon.dispatch.idempotency import First, Idempotency
from axon.domain.job import Job
from axon.errors import AxonError, Conflict
from axon.gateway.turn.ask import Ask


class Twins:
    """Finds the first of several requests with one key, and accepts it once more where it may not have been."""

    def __init__(
        self, idempotency: Idempotency, admission: Admission, dispatch: Dispatch, new_id: Callable[[str], str]
    ) -> None:
        self._idempotency, self._admission, self._dispatch = idempotency, admission, dispatch
        self._new_id = new_id

    async def first(self, ask: Ask) -> First | str:
        """The first request with this one's key, or, where there is none yet, the id of a new turn."""
        return await self._resolve(ask) if ask.idempotency_key else self._new_id(ask.prefix)

    async def again(self, first: First) -> Job:
        """The first request's job, accepted once more where that may not have gone to its end."""
        if not first.claimed:
            await self._admission.readmit(first.job)
            await self._dispatch.accept(first.job, again=True)
        return first.job

    async def twin(self, ask: Ask) -> First | None:
        """The same request, accepted under its key and id while this one's job was being made: it must not be undone.

        Raises ``Conflict`` when the key went to another request meanwhile.
        """
        if not ask.idempotency_key:
            return None
        try:
            found = await self._resolve(ask)
        except Conflict:
            raise
        except AxonError:
            return None  # the log knows who was first, and is asked when the job is accepted
        return found if isinstance(found, First) else None

    async def has_id(self, ask: Ask, job_id: str) -> bool:
        """Whether a twin's turn, of whatever body, has this id."""
        try:
            first = await self.twin(ask)
        except Conflict:
            return True
        return first is not None and first.job.id == job_id

    async def _resolve(self, ask: Ask) -> str | First:
        return await self._idempotency.resolve(
            prefix=ask.prefix, tenant=ask.tenant, key=ask.idempotency_key, body_digest=ask.body_digest
        )
