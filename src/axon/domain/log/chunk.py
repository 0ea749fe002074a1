"""One entry of a stream: tokens numbered by seq, marks where choices end, the terminal state. Knows no wire format.

Seq counts tokens from 1 over all choices in the order (position, choice). What a client sees is a function of
the tokens alone, never of how they were cut into chunks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import msgspec

from axon.domain.billing.ledger import Ledger
from axon.domain.content.tool_call import CallPiece


class Likely(NamedTuple):
    """One candidate token for a position, and its natural log probability."""

    data: bytes
    logprob: float


class ScoredToken(NamedTuple):
    """One prompt token, its log probability and the likeliest tokens at its position; the first token has neither."""

    data: bytes
    logprob: float | None
    top: tuple[Likely, ...] = ()


class Ranked(NamedTuple):
    """The rank of one prompt token among all tokens, from 1, and the ids of the likeliest tokens at its position."""

    rank: int
    top_ids: tuple[int, ...] = ()


class Details(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Optional facts about a token: its reasoning text, its log probability, the stop string that it completes. Tokens
    are given as bytes, because the gateway that writes the answer may have another tokenizer by then. Fields of a later
    release are dropped."""

    reasoning: str = ""
    """The part of the token's text that is reasoning."""
    data: bytes = msgspec.field(name="bytes", default=b"")
    logprob: float | None = None
    """Natural log probability; None when not requested, and then ``top`` and ``offset`` are None as well: release 0.1
    expects all three or none."""
    top: tuple[Likely, ...] | None = None
    """The likeliest tokens at this position, the likeliest first."""
    offset: int | None = None
    """Number of characters of the answer before this token."""
    prompt: tuple[ScoredToken, ...] = ()
    """The prompt's tokens, on the first token of an answer whose prompt is scored."""
    ranks: tuple[Ranked, ...] = ()
    """Rank and ids for each token of ``prompt`` but the first, where the sampling asks for them (``prompt_top``)."""
    stop: str = ""
    """The stop string that the choice's text ended with, on the token that completed it; the answer's text ends before
    it."""
    calls: tuple[CallPiece, ...] = ()
    """The pieces of tool calls that the token completes, in order; their text is not part of the answer's."""


class Token(NamedTuple):
    """One token of one choice, with the text it completes (empty while a character is incomplete)."""

    choice: int
    id: int
    text: str
    details: Details | None = None
    """None for most tokens."""

    @property
    def reasoning(self) -> str:
        """The part of the token's text that is reasoning."""
        return self.details.reasoning if self.details is not None else ""


class End(NamedTuple):
    """A choice ended. ``reason`` is ``stop``, ``length`` or ``tool_calls``."""

    choice: int
    reason: str
    at: int | None = None
    """Seq of the choice's last token; None means the chunk's last token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Tokens ``first`` … ``last`` of a stream, written by one attempt (epoch)."""

    v: int = 1
    first: int
    epoch: int
    tokens: tuple[Token, ...] = ()
    ends: tuple[End, ...] = ()
    """Ends of the choices whose last token is in this chunk. The terminal chunk repeats all of them, for readers that
    missed one."""
    terminal: str = ""
    """The job's terminal state, on its last chunk only."""
    code: str = ""
    """Failure code, when the job failed."""
    message: str = ""
    cached: int = 0
    """Prompt tokens found in the prefix cache, as far as known when the chunk was written."""
    reasoned: int = 0
    """Reasoning tokens in the stream up to the last token of this chunk."""
    ledger: Ledger | None = None
    """On an attempt's first chunk, the ledger at that moment; on the terminal chunk, the turn's final ledger."""
    vectors: tuple[bytes, ...] = ()
    """On the terminal chunk of an embedding job: a vector of float32 numbers (little-endian) for each input."""
    at: float = field(default=0.0, compare=False)
    """Unix time at which its worker appended it; 0 if that is not known."""
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def last(self) -> int:
        return self.first + len(self.tokens) - 1

    def until(self, seq: int) -> "Chunk":
        """The part of this chunk up to ``seq``, with the ends of the choices that end in it."""
        ends = tuple(end for end in self.ends if end.at is not None and end.at <= seq)
        return replace(self, tokens=self.tokens[: max(0, seq + 1 - self.first)], ends=ends)

    def after(self, seq: int) -> "Chunk":
        """The part of this chunk past ``seq``. A choice that ends exactly at ``seq`` keeps its end: the reader may have
        stopped between the token and the end."""
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
            vectors=self.vectors,
            at=self.at,
            extra=self.extra,
        )
