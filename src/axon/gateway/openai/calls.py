"""The JSON of tool calls in a chat's answer. Pure functions of tokens."""

from collections.abc import Iterable, Sequence
from typing import Any

from axon.domain.content.tool_call import CallPiece, call_id
from axon.domain.log.chunk import Token


def pieces_of(tokens: Iterable[Token]) -> list[CallPiece]:
    """Returns the pieces of calls that these tokens of one choice complete, those of the same call joined."""
    found: list[CallPiece] = []
    for token in tokens:
        for piece in token.details.calls if token.details else ():
            if found and found[-1].index == piece.index:
                found[-1] = found[-1].plus(piece.arguments)
            else:
                found.append(piece)
    return found


def call_deltas(turn_id: str, choice: int, tokens: Sequence[Token]) -> list[dict[str, Any]]:
    """Returns the entries of ``delta.tool_calls``; a call's id and name are on its first one alone."""
    return [
        {"index": piece.index, **_head(turn_id, choice, piece)}
        if piece.name
        else {"index": piece.index, "function": {"arguments": piece.arguments}}
        for piece in pieces_of(tokens)
    ]


def call_bodies(turn_id: str, choice: int, tokens: Sequence[Token]) -> list[dict[str, Any]]:
    """Returns the ``tool_calls`` of a whole message."""
    return [_head(turn_id, choice, piece) for piece in pieces_of(tokens)]


def _head(turn_id: str, choice: int, piece: CallPiece) -> dict[str, Any]:
    return {
        "id": call_id(turn_id, choice, piece.index),
        "type": "function",
        "function": {"name": piece.name, "arguments": piece.arguments},
    }
