"""An answer as one text: what is said, and each tool call as a mark with its name and then its arguments. Pure.

A call that is begun twice, or whose arguments miss a character, is another transcript.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from axon.domain.log.chunk import Token

_HEAD = re.compile("\x1e([0-9]+) ([^\x1f]*)\x1f([^\x1e]*)")
"""Two control characters, which no token of the model has."""


class Call(NamedTuple):
    """A tool call of an answer."""

    number: int
    """Its number within the choice, from 0 on."""
    name: str
    arguments: str


def call_head(index: int, name: str) -> str:
    """The mark with which a call begins."""
    return f"\x1e{index} {name}\x1f"


def calls_of(text: str) -> list[Call]:
    """The calls of a transcript, in their order."""
    return [Call(int(index), name, arguments) for index, name, arguments in _HEAD.findall(text)]


def said(text: str) -> str:
    """What a transcript says beside its calls."""
    return _HEAD.sub("", text)


def transcript(tokens: Iterable[Token]) -> str:
    """The transcript of one choice's tokens."""
    texts: list[str] = []
    for token in tokens:
        texts.append(token.text)
        for piece in token.details.calls if token.details else ():
            texts += [call_head(piece.index, piece.name) if piece.name else "", piece.arguments]
    return "".join(texts)
