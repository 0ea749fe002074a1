"""One entry of a stream: tokens numbered by seq, marks where choices end, the terminal state. Knows no wire format.

Seq counts tokens from 1 over all choices in the order (position, choice). What a client sees is a function of
the tokens alone, never of how they were cut into chunks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import msgspec

from axon.domain.ledger import Ledger


class Likely(NamedTuple):
    """One token that could have stood in a place, and its natural log probability."""

    data: bytes
    logprob: float


class ScoredToken(NamedTuple):
    """One token of a prompt, its log probability and the likeliest tokens of its place; the first token has none."""

    data: bytes
    logprob: float | None
    top: tuple[Likely, ...] = ()


class Details(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What else is known of a token: its thinking, its log probability. Tokens are bytes here, because whoever writes
    the answer may have another tokenizer by then. Fields of a later release are dropped."""

    reasoning: str = ""
    """The part of its text that is the model's thinking."""
    data: bytes = msgspec.field(name="bytes", default=b"")
    logprob: float | None = None
    """None where nobody asked, and then the next two are as well: release 0.1 expects all three or none."""
    top: tuple[Likely, ...] | None = None
    """The likeliest tokens in its place, the likeliest first."""
    offset: int | None = None
    """Characters of the answer before it."""
    prompt: tuple[ScoredToken, ...] = ()
    """The prompt's tokens, on the first token of an answer whose prompt is scored."""


class Token(NamedTuple):
    """One token of one choice, with the text it completes (empty while a character is incomplete)."""

    choice: int
    id: int
    text: str
    details: Details | None = None
    """None for most tokens."""

    @property
    def reasoning(self) -> str:
        """The part of its text that is the model's thinking."""
        return self.details.reasoning if self.details is not None else ""


class End(NamedTuple):
    """A choice ended. ``reason`` is ``stop`` or ``length``."""

    choice: int
    reason: str
    at: int | None = None
    """Seq of its last token; where it is not said, the chunk's last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Tokens ``first`` … ``last`` of a stream, written by one attempt (epoch)."""

    v: int = 1
    first: int
    epoch: int
    tokens: tuple[Token, ...] = ()
    ends: tuple[End, ...] = ()
    """Of the choices whose last token is here; of all of them on the last chunk, for who missed them on the way."""
    terminal: str = ""
    """The job's terminal state, on its last chunk only."""
    code: str = ""
    """Why it failed, when it did."""
    message: str = ""
    cached: int = 0
    """Tokens of the prompt that were not computed, as far as is known by then."""
    reasoned: int = 0
    """Tokens of thinking in the stream, up to the last one here."""
    ledger: Ledger | None = None
    """As it stood, on an attempt's first chunk; on the last one, the turn's."""
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def last(self) -> int:
        return self.first + len(self.tokens) - 1

    def until(self, seq: int) -> "Chunk":
        """The part of this chunk up to ``seq``, with the ends of the choices that end in it."""
        ends = tuple(end for end in self.ends if end.at is not None and end.at <= seq)
        return replace(self, tokens=self.tokens[: max(0, seq + 1 - self.first)], ends=ends)

    def after(self, seq: int) -> "Chunk":
        """The part of this chunk past ``seq``; who stopped at a choice's last token may not know of its end."""
        skip = max(0, seq + 1 - self.first)
        if skip == 0:
            return self
        return Chunk(
            v=self.v,
            first=self.first + skip,
            epoch=self.epoch,
            tokens=self.tokens[skip:],
            ends=self.ends if self.terminal else tuple(end for end in self.ends if end.at is None or end.at >= seq),
            terminal=self.terminal,
            code=self.code,
            message=self.message,
            cached=self.cached,
            reasoned=self.reasoned,
            ledger=self.ledger,
            extra=self.extra,
        )
