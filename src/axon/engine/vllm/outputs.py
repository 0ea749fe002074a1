"""What vLLM returns of a step, as the protocol's messages. Pure functions; imports no vLLM."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from axon.domain.failure import Failure
from axon.engine.protocol.messages import Add, Emitted, Refused, Scored


class Logprob(Protocol):
    """A token's log probability and its rank among all tokens, from 1."""

    logprob: float
    rank: int | None


Likely = Mapping[int, Logprob]
"""The chosen token and the most likely ones of one place, by their ids."""


class Completion(Protocol):
    """The new tokens of a sequence."""

    token_ids: Sequence[int]
    logprobs: Sequence[Likely] | None
    finish_reason: str | None


class Output(Protocol):
    """A sequence's output of one step, as far as it is read here."""

    request_id: str
    outputs: Sequence[Completion]
    prompt_logprobs: Sequence[Likely | None] | None
    num_cached_tokens: int | None


_ENDS = ("stop", "length")


def emitted_of(output: Output, add: Add, *, is_first: bool) -> list[Emitted]:
    """The sequence's new tokens; ``is_first``: none of this attempt came before."""
    completion = output.outputs[0]
    tokens = list(completion.token_ids)
    finish = completion.finish_reason if completion.finish_reason in _ENDS else None
    emitted = []
    for index, token in enumerate(tokens):
        logprob, top = _likely(token, completion.logprobs[index] if completion.logprobs else None, add)
        cached = min(output.num_cached_tokens or 0, len(add.prompt_ids)) if is_first and index == 0 else 0
        ends = finish if index == len(tokens) - 1 else None
        emitted.append(Emitted(add.id, token, ends, logprob, top, cached))
    return emitted


def scored_of(output: Output, add: Add) -> Scored | None:
    """The log probabilities of the prompt's tokens from the second on; None where they were not asked for."""
    if not output.prompt_logprobs:
        return None
    num_top = (add.sampling.logprobs or 0) if add.sampling.prompt_top is None else add.sampling.prompt_top
    rows = []
    for token, likely in zip(add.prompt_ids[1:], output.prompt_logprobs[1:], strict=False):
        assert likely is not None, "only the first token of a prompt has no log probability"
        own = likely[token]
        rows.append((_finite(own.logprob), own.rank or 1, _top(likely, num_top)))
    return Scored(add.id, rows)


def refusal_of(output: Output, add: Add) -> Refused | None:
    """The refusal of a sequence that vLLM gave up, such as one whose grammar it could not follow; else None."""
    reason = output.outputs[0].finish_reason
    if reason is None or reason in _ENDS:
        return None
    return Refused(add.id, Failure.INVALID, f"vLLM ended the sequence without an answer: {reason}.")


def _likely(token: int, likely: Likely | None, add: Add) -> tuple[float | None, list[tuple[int, float]]]:
    if likely is None or add.sampling.logprobs is None:
        return None, []
    return _finite(likely[token].logprob), _top(likely, add.sampling.logprobs)


def _top(likely: Likely, count: int) -> list[tuple[int, float]]:
    """The most likely tokens, most likely first; the chosen one is among them only if it is one of them."""
    ranked = sorted(likely.items(), key=lambda item: item[1].rank or 1)
    return [(token, _finite(each.logprob)) for token, each in ranked if (each.rank or 1) <= count][:count]


def _finite(logprob: float) -> float:
    """JSON knows no infinity: a token without any probability gets a number that is as good."""
    return max(logprob, -9999.0)
