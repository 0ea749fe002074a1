"""One entry of a stream: tokens numbered by seq, marks where choices end, the terminal state. Knows no wire format.

Seq counts tokens from 1 over all choices in the order (position, choice). What a client sees is a function of
the tokens alone, never of how they were cut into chunks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Token(NamedTuple):
    """One token of one choice, with the text it completes (empty while a character is incomplete)."""

    choice: int
    id: int
    text: str
    extras: Mapping[str, Any] | None = None
    """What else is known of it, such as its log probability."""


class End(NamedTuple):
    """A choice ended after the tokens before it. ``reason`` is ``stop`` or ``length``."""

    choice: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Tokens ``first`` … ``last`` of a stream, written by one attempt (epoch)."""

    v: int = 1
    first: int
    epoch: int
    tokens: tuple[Token, ...] = ()
    ends: tuple[End, ...] = ()
    terminal: str = ""
    """The job's terminal state, on its last chunk only."""
    code: str = ""
    """Why it failed, when it did."""
    message: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def last(self) -> int:
        return self.first + len(self.tokens) - 1

    def after(self, seq: int) -> "Chunk":
        """The part of this chunk past ``seq``."""
        skip = max(0, seq + 1 - self.first)
        if skip == 0:
            return self
        return Chunk(
            v=self.v,
            first=self.first + skip,
            epoch=self.epoch,
            tokens=self.tokens[skip:],
            ends=self.ends,
            terminal=self.terminal,
            code=self.code,
            message=self.message,
            extra=self.extra,
        )
