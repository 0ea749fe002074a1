"""``best_of``: selects the answers to return among those generated. Pure functions of the job and its tokens."""

from collections.abc import Sequence

from axon.domain.job import Job
from axon.domain.log.chunk import Token
from axon.domain.reply import CompletionReply


def is_chosen_from(job: Job) -> bool:
    """Whether the job generates more answers than it returns; which ones is known only at its end."""
    return isinstance(job.reply, CompletionReply) and job.reply.best > 0


def chosen(job: Job, said: Sequence[Sequence[Token]]) -> Sequence[int]:
    """Returns the choices to return, in order: for each prompt those with the highest mean log probability per token.

    ``said`` has the tokens of each choice.
    """
    if not (isinstance(job.reply, CompletionReply) and job.reply.best):
        return range(job.choices)
    return [
        choice
        for first in range(0, job.choices, job.choices_each)
        for choice in _best_first(range(first, first + job.choices_each), said)[: job.reply.best]
    ]


def _best_first(choices: Sequence[int], said: Sequence[Sequence[Token]]) -> Sequence[int]:
    """Sorts choices by their mean log probability, the highest first; equal ones keep their order."""
    return sorted(choices, key=lambda choice: -_mean_logprob(said[choice]))


def _mean_logprob(tokens: Sequence[Token]) -> float:
    """Returns the mean log probability per token; minus infinity for an answer without tokens."""
    found = [token.details.logprob for token in tokens if token.details and token.details.logprob is not None]
    return sum(found) / len(found) if found else float("-inf")
