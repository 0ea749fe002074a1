"""Tells the comparison of versions how the turns of this gateway go. Knows no rollout."""

from axon.domain.failure import Failure
from axon.domain.job import Job
from axon.domain.log.chunk import Chunk
from axon.domain.registry.samples import Outcome
from axon.domain.turn import TurnState
from axon.registry.observing import Observing

_OWN_FAULTS = frozenset(
    {
        Failure.CONTEXT_TOO_LONG,
        Failure.KV_SHARE_TOO_SMALL,
        Failure.PROMPT_LOGPROBS_UNSUPPORTED,
        Failure.INVALID,
        Failure.ADAPTER_UNUSABLE,
        Failure.ADAPTER_UNAVAILABLE,
    }
)
"""Failures that are the request's own fault, not its version's."""


def outcome_of(last: Chunk) -> Outcome:
    """How a turn's terminal chunk counts for its version."""
    if last.terminal == TurnState.FAILED:
        return Outcome.OK if last.code in _OWN_FAULTS else Outcome.ERROR
    ends = {TurnState.EXPIRED: Outcome.EXPIRED, TurnState.CANCELLED: Outcome.LEFT}
    return ends.get(TurnState(last.terminal), Outcome.OK)


class TurnObserving:
    """``begun`` when a turn is accepted here; ``saw`` and ``left`` are called by whoever follows it."""

    def __init__(self, observing: Observing) -> None:
        self._observing = observing

    def begun(self, job: Job, *, is_first: bool) -> None:
        """A turn was accepted that asked for no version by name: whoever names one chooses what is compared.

        ``is_first`` says that its session begins with it. Later turns have longer prompts, so only first ones are
        timed; a conversation that was made with items has a history too. A turn in the background is timed by whoever
        reads it later, so it is not.
        """
        self._observing.begun(
            job.id, job.deployment, job.version, is_first=is_first and job.ordinal <= 1 and not job.background
        )

    def followed(self, job_id: str) -> None:
        """A reader follows the turn here."""
        self._observing.followed(job_id)

    def saw(self, job_id: str, chunk: Chunk) -> None:
        """A reader is sent this chunk."""
        if chunk.tokens:
            self._observing.answered(job_id)
        if chunk.terminal:
            decode_s = max(0.0, chunk.ledger.decode_s - chunk.ledger.paced_s) if chunk.ledger else None
            self._observing.ended(job_id, outcome_of(chunk), num_tokens=chunk.last, decode_s=decode_s)

    def left(self, job_id: str) -> None:
        """No reader follows the turn any more; that speaks against its version if the first token had not come."""
        self._observing.ended(job_id, Outcome.LEFT)

    def refused(self, deployment: str, version: str) -> None:
        """A turn was refused after its version was decided on. Only those that begin a session and name no version are
        counted here: whoever asks again and again in one session would speak against one version alone."""
        self._observing.refused(deployment, version)
