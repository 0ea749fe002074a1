"""``best_of``: of the answers that were made, those that are returned. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from axon.domain.chunk import Token
from axon.domain.job import Job
from axon.gateway.openai import CompletionRequest

_BEST, _HIDES_LOGPROBS = "best", "hides_logprobs"


def options(ask: CompletionRequest) -> Mapping[str, Any]:
    """What a job's reply has to know: nothing where every answer is returned."""
    return {_BEST: ask.n or 1, _HIDES_LOGPROBS: ask.logprobs is None} if ask.is_chosen_from else {}


def is_chosen_from(job: Job) -> bool:
    """Whether some of its answers are never returned, and nobody knows which before its end."""
    return _BEST in job.reply


def hides_logprobs(job: Job) -> bool:
    """Whether log probabilities were asked for to choose by, and by nobody to see."""
    return bool(job.reply.get(_HIDES_LOGPROBS))


def chosen(job: Job, said: Sequence[Sequence[Token]]) -> Sequence[int]:
    """The choices that are returned, in order: of each prompt those with the highest log probability per token."""
    if not is_chosen_from(job):
        return range(job.choices)
    return [
        choice
        for first in range(0, job.choices, job.choices_each)
        for choice in _by_merit(range(first, first + job.choices_each), said)[: job.reply[_BEST]]
    ]


def _by_merit(choices: Sequence[int], said: Sequence[Sequence[Token]]) -> Sequence[int]:
    """The best first, of equals the first."""
    return sorted(choices, key=lambda choice: -_mean_logprob(said[choice]))


def _mean_logprob(tokens: Sequence[Token]) -> float:
    found = [token.extras["logprob"] for token in tokens if token.extras and "logprob" in token.extras]
    return sum(found) / len(found) if found else float("-inf")
