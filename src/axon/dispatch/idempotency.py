"""Idempotency keys: the same request sent twice is one turn, because the turn's id is derived from the key.

Nothing is stored besides the turn. A gateway that dies while accepting leaves either no turn, or one that the next try
finds and accepts again, which changes nothing. A turn that was cancelled because its acceptance failed or nobody read
it frees its key for the next one; a turn whose client asked for its cancellation keeps it, for as long as the log keeps
the stream. Knows no HTTP; a body is known by its digest.
"""

import hashlib
from dataclasses import dataclass

from axon.domain.job import Job
from axon.domain.turn import TurnState
from axon.domain.wire import decode
from axon.errors import Conflict
from axon.ports.live import TokenLog
from axon.ports.store import TurnStore

_MAX_CANCELLED = 100


@dataclass(frozen=True, slots=True)
class First:
    """The turn that a key was used for before."""

    job: Job
    claimed: bool
    """Whether a worker has claimed it, which proves that it was accepted."""


class Idempotency:
    """Finds the turn of a tenant's key."""

    def __init__(self, log: TokenLog, turns: TurnStore) -> None:
        self._log, self._turns = log, turns

    async def resolve(self, *, prefix: str, tenant: str, key: str, body_digest: str) -> str | First:
        """Returns the id for the key's new turn, or the turn opened before; raises ``Conflict`` for another body."""
        for generation in range(_MAX_CANCELLED):
            job_id = derived_id(prefix, tenant, key, generation)
            first, frees_key = await self._find(job_id)
            if frees_key:
                continue
            if first is not None:
                check_body(first.job, body_digest)
            return first or job_id
        raise Conflict("This idempotency key was cancelled too often; use another one.")

    async def _find(self, job_id: str) -> tuple[First | None, bool]:
        """Returns the turn that was opened under this id, if any, and whether it has freed its key."""
        view = await self._log.read(job_id, after=0)
        if view is not None:
            cancelled = bool(view.chunks and view.chunks[-1].terminal == TurnState.CANCELLED)
            frees_key = not view.asked and (cancelled or (view.cancelled and not view.ended))
            return First(decode(Job, view.body), view.epoch > 0), frees_key
        turn = await self._turns.get(job_id)
        if turn is None:
            return None, False
        return First(turn.job, turn.state.terminal), turn.state is TurnState.CANCELLED


def check_body(first: Job, body_digest: str) -> None:
    """Raises ``Conflict`` when the key's turn has another body."""
    if first.body_digest not in ("", body_digest):
        raise Conflict("This idempotency key was used with another request body.")


def derived_id(prefix: str, tenant: str, key: str, generation: int) -> str:
    """The id of a key's turn: a digest of tenant, key and generation, so that it cannot be guessed without the key."""
    text = f"{len(tenant)}:{tenant}{len(key)}:{key}{generation}"
    return prefix + hashlib.sha256(text.encode()).hexdigest()[:32]
