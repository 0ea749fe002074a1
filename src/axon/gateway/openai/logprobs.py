"""The JSON of log probabilities, for chat and for the older completions API. Pure functions of tokens."""

import codecs
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from axon.domain.log.chunk import Details, Likely, Ranked, ScoredToken, Token

_MIN_LOGPROB = -9999.0
"""Stands for minus infinity, which JSON cannot express; OpenAI's API uses the same value."""


def of_chat(tokens: Sequence[Token]) -> dict[str, Any] | None:
    """Returns chat's ``logprobs`` for tokens of one choice; None if the client did not ask for them."""
    content = [
        {**_entry(data, logprob), "top_logprobs": [_entry(*likely) for likely in top]}
        for data, logprob, top, _ in _scored(tokens)
    ]
    return {"content": content, "refusal": None} if content else None


def of_completion(
    tokens: Sequence[Token], *, echoed_top: int | None = None, num_before: int = 0, prompt_only: bool = False
) -> dict[str, Any] | None:
    """Returns the ``logprobs`` of completions, in parallel lists, for tokens of one choice; None if not asked for.

    ``num_before`` is the number of characters of the echoed prompt before the text. The log probabilities of the
    prompt's own tokens come with the first token of the answer and go before it, with at most ``echoed_top`` likeliest
    tokens for each; None if the prompt is not echoed.
    """
    known = _scored(tokens)
    if not known:
        return None
    prompt = _prompt_of(tokens).prompt if echoed_top is not None else ()
    said = [] if prompt_only else known
    return {
        "tokens": [_text(each.data) for each in prompt] + [_text(each.data) for each in said],
        "token_logprobs": [None if each.logprob is None else _finite(each.logprob) for each in prompt]
        + [_finite(each.logprob) for each in said],
        "top_logprobs": [None if each.logprob is None else _top(each.top[:echoed_top]) for each in prompt]
        + [_top(each.top) for each in said],
        "text_offset": _offsets(each.data for each in prompt) + [num_before + each.offset for each in said],
    }


def of_prompt(prompt_ids: Sequence[int], tokens: Sequence[Token], num_top: int) -> list[dict[str, Any] | None] | None:
    """Returns vLLM's ``prompt_logprobs``; None if the answer has no token yet.

    The prompt's first token has none. Every other has a map of token ids: first its own, then those of the ``num_top``
    likeliest tokens in its place.
    """
    details = _prompt_of(tokens)
    if not details.prompt:
        return None
    rest = zip(prompt_ids[1:], details.prompt[1:], details.ranks, strict=True)
    return [None, *(_ranked(token_id, scored, ranked, num_top) for token_id, scored, ranked in rest)]


def _ranked(token_id: int, scored: ScoredToken, ranked: Ranked, num_top: int) -> dict[str, Any]:
    """Returns the map of one prompt token; a request may need hundreds of thousands of entries."""
    own = {"logprob": _finite(scored.logprob or 0.0), "rank": ranked.rank, "decoded_token": _text(scored.data)}
    entries = {str(token_id): own}
    for rank, id, (data, logprob) in zip(range(1, num_top + 1), ranked.top_ids, scored.top, strict=False):
        text = data.decode(errors="replace")
        entries[str(id)] = {"logprob": max(logprob, _MIN_LOGPROB), "rank": rank, "decoded_token": text}
    return entries


def _prompt_of(tokens: Sequence[Token]) -> Details:
    """Returns the details with the log probabilities of the prompt's tokens, if these tokens have any."""
    return next((token.details for token in tokens if token.details and token.details.prompt), Details())


def _offsets(pieces: Iterable[bytes]) -> list[int]:
    """Returns the index of the character at which each piece begins, or of which it is a part."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    offsets, num_characters = [], 0
    for piece in pieces:
        offsets.append(num_characters)
        num_characters += len(decoder.decode(piece))
    return offsets


def _top(top: Sequence[Likely]) -> dict[str, float]:
    return {_text(data): _finite(logprob) for data, logprob in top}


class _Scored(NamedTuple):
    """A token of the answer whose log probability is known."""

    data: bytes
    logprob: float
    top: Sequence[Likely]
    offset: int


def _scored(tokens: Sequence[Token]) -> list[_Scored]:
    """Returns the tokens whose log probability is known."""
    return [
        _Scored(details.data, details.logprob, details.top or (), details.offset or 0)
        for token in tokens
        if (details := token.details) is not None and details.logprob is not None
    ]


def _entry(data: bytes, logprob: float) -> dict[str, Any]:
    return {"token": _text(data), "logprob": _finite(logprob), "bytes": list(data)}


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _finite(logprob: float) -> float:
    return max(logprob, _MIN_LOGPROB)
