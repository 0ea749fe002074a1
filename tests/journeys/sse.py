"""Reads server-sent events as a plain client does."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass
class Piece:
    """One event of a stream, reduced to what the journeys look at."""

    seq: int
    text: str
    finish: str | None
    event: dict[str, Any]


def pieces(lines: Iterable[str]) -> Iterator[Piece]:
    """The events up to [DONE]; anything that is not a bare data line is a defect."""
    for line in lines:
        if not line:
            continue
        assert line.startswith("data: "), f"not a bare data line: {line!r}"
        if line == "data: [DONE]":
            return
        event = json.loads(line[6:])
        if "error" in event:
            raise AssertionError(f"the stream failed: {event}")
        choice = event["choices"][0] if event["choices"] else {}
        text = choice.get("text") or (choice.get("delta") or {}).get("content") or ""
        yield Piece(event["axon"]["seq"], text, choice.get("finish_reason"), event)
    raise AssertionError("the stream broke off before [DONE]")


def text_of(stream: Iterable[Piece]) -> str:
    return "".join(piece.text for piece in stream)
