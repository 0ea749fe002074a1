"""Log probabilities as OpenAI's clients read them: one shape for chat, an older one for completions. Pure."""

import codecs
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from axon.domain.chunk import Token

_LEAST = -9999.0
"""Stands for minus infinity, which JSON has not."""


def of_chat(tokens: Sequence[Token]) -> dict[str, Any] | None:
    """For tokens of one choice; None where none was asked for."""
    content = [
        {**_entry(extras["bytes"], extras["logprob"]), "top_logprobs": [_entry(*pair) for pair in extras["top"]]}
        for extras in _extras(tokens)
    ]
    return {"content": content, "refusal": None} if content else None


def of_completion(tokens: Sequence[Token], *, num_before: int = 0, prompt_only: bool = False) -> dict[str, Any] | None:
    """The same in parallel lists; ``num_before`` characters of an echoed prompt stand before the text.

    Where the prompt's own were asked for, they come first, with the first token of the answer.
    """
    known = _extras(tokens)
    if not known:
        return None
    prompt = known[0].get("prompt", ())
    said = [] if prompt_only else known
    return {
        "tokens": [_text(data) for data, _, _ in prompt] + [_text(extras["bytes"]) for extras in said],
        "token_logprobs": [None if logprob is None else _finite(logprob) for _, logprob, _ in prompt]
        + [_finite(extras["logprob"]) for extras in said],
        "top_logprobs": [None if logprob is None else _top(top) for _, logprob, top in prompt]
        + [_top(extras["top"]) for extras in said],
        "text_offset": _offsets(data for data, _, _ in prompt) + [num_before + extras["offset"] for extras in said],
    }


def _offsets(pieces: Iterable[bytes]) -> list[int]:
    """Where in their text each begins; one that is a part of a character, where that begins."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    offsets, num_characters = [], 0
    for piece in pieces:
        offsets.append(num_characters)
        num_characters += len(decoder.decode(piece))
    return offsets


def _top(top: Sequence[tuple[bytes, float]]) -> dict[str, float]:
    return {_text(data): _finite(logprob) for data, logprob in top}


def _extras(tokens: Sequence[Token]) -> list[Mapping[str, Any]]:
    return [token.extras for token in tokens if token.extras and "logprob" in token.extras]


def _entry(data: bytes, logprob: float) -> dict[str, Any]:
    return {"token": _text(data), "logprob": _finite(logprob), "bytes": list(data)}


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _finite(logprob: float) -> float:
    return max(logprob, _LEAST)
