"""A tool call of an answer, in the pieces in which it is written. Knows no format of a model and no API.

The worker parses calls out of the text, so a reader may begin at any token, and a replay gives the same calls.
"""

import hashlib

import msgspec


class CallPiece(msgspec.Struct, frozen=True, array_like=True):
    """The part of a tool call that one token completes. Calls are numbered from 0 within their choice."""

    index: int
    name: str = ""
    """The called function, whole, on the first piece of a call; empty on the later ones."""
    arguments: str = ""
    """The next characters of the arguments, which are the text of a JSON object."""

    def plus(self, arguments: str) -> "CallPiece":
        """The piece with more arguments at its end."""
        return CallPiece(self.index, self.name, self.arguments + arguments)


TOOL_CALLS = "tool_calls"
"""The finish reason of a choice that ended with calls."""


def call_id(turn_id: str, choice: int, index: int) -> str:
    """The id of a call. It is derived from the turn, so every reader and every replay gives a call the same id."""
    return "call_" + hashlib.sha256(f"{turn_id} {choice} {index}".encode()).hexdigest()[:24]
