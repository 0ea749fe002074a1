"""Log probabilities as OpenAI's clients read them: one shape for chat, an older one for completions. Pure."""

from collections.abc import Mapping, Sequence
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


def of_completion(tokens: Sequence[Token], *, num_before: int = 0) -> dict[str, Any] | None:
    """The same in parallel lists; ``num_before`` characters of an echoed prompt stand before the text."""
    known = _extras(tokens)
    if not known:
        return None
    return {
        "tokens": [_text(extras["bytes"]) for extras in known],
        "token_logprobs": [_finite(extras["logprob"]) for extras in known],
        "top_logprobs": [{_text(data): _finite(logprob) for data, logprob in extras["top"]} for extras in known],
        "text_offset": [num_before + extras["offset"] for extras in known],
    }


def _extras(tokens: Sequence[Token]) -> list[Mapping[str, Any]]:
    return [token.extras for token in tokens if token.extras and "logprob" in token.extras]


def _entry(data: bytes, logprob: float) -> dict[str, Any]:
    return {"token": _text(data), "logprob": _finite(logprob), "bytes": list(data)}


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _finite(logprob: float) -> float:
    return max(logprob, _LEAST)
