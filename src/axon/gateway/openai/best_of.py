"""``best_of``: of the answers that were made, those that are returned. Pure functions of the job and its tokens."""

from collections.abc import Sequence

from axon.domain.chunk import Token
from axon.domain.job import Job
from axon.domain.reply import CompletionReply


def is_chosen_from(job: Job) -> bool:
    """Whether some of its answers are never returned, and nobody knows which before its end."""
    return isinstance(job.reply, CompletionReply) and job.reply.best > 0


def chosen(job: Job, said: Sequence[Sequence[Token]]) -> Sequence[int]:
    """The choices that are returned, in order: of each prompt those with the highest log probability per token."""
    if not (isinstance(job.reply, CompletionReply) and job.reply.best):
        return range(job.choices)
    return [
        choice
        for first in range(0, job.choices, job.choices_each)
        for choice in _by_merit(range(first, first + job.choices_each), said)[: job.reply.best]
    ]


def _by_merit(choices: Sequence[int], said: Sequence[Sequence[Token]]) -> Sequence[int]:
    """The best first; of equally good ones, the first."""
    return sorted(choices, key=lambda choice: -_mean_logprob(said[choice]))


def _mean_logprob(tokens: Sequence[Token]) -> float:
    found = [token.details.logprob for token in tokens if token.details and token.details.logprob is not None]
    return sum(found) / len(found) if found else float("-inf")
