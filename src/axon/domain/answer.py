"""The parts of an answer in order: its texts and its tool calls. Pure functions of the tokens; knows no API."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from axon.domain.content.tool_call import CallPiece
from axon.domain.log.chunk import Token


@dataclass(slots=True)
class Part:
    """A text of the answer, or one call."""

    tokens: list[Token] = field(default_factory=list)
    """Tokens of a text, those included that complete no character."""
    pieces: list[CallPiece] = field(default_factory=list)
    """Pieces of a call; empty for a text."""

    @property
    def text(self) -> str:
        """The text; empty for a call."""
        return "".join(token.text for token in self.tokens)

    @property
    def call(self) -> CallPiece | None:
        """The call as one piece; None for a text."""
        if not self.pieces:
            return None
        return self.pieces[0].plus("".join(piece.arguments for piece in self.pieces[1:]))


def parts_of(tokens: Iterable[Token]) -> list[Part]:
    """The parts that the tokens of one choice make; within a token, its text comes before its calls."""
    parts: list[Part] = []
    pending: list[Token] = []
    for token in tokens:
        pending.append(token)
        if token.text:
            if not parts or parts[-1].pieces:
                parts.append(Part())
            parts[-1].tokens += pending
            pending = []
        for piece in token.details.calls if token.details else ():
            pending = []
            if not (parts and parts[-1].pieces and parts[-1].pieces[0].index == piece.index):
                parts.append(Part())
            parts[-1].pieces.append(piece)
    if parts and not parts[-1].pieces:
        parts[-1].tokens += pending
    return parts
