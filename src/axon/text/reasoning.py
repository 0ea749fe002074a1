"""Separates a model's reasoning from its answer, in text that comes in pieces. Knows no tokens.

A reasoning model writes ``<think> … </think>`` before its answer. Only a block that the text begins with
counts; the white space after a tag belongs to neither part.
"""

from enum import Enum

OPEN, CLOSE = "<think>", "</think>"


class _State(Enum):
    BEFORE = "before"
    THINKING = "thinking"
    ANSWERING = "answering"


class ReasoningSplitter:
    """Splits one choice's text; ``inside`` when the prompt has opened the block already."""

    def __init__(self, *, inside: bool = False) -> None:
        self._state = _State.THINKING if inside else _State.BEFORE
        self._after_mark = inside
        self._held = ""

    def push(self, piece: str) -> tuple[str, str]:
        """Returns the text that this piece adds to the answer and to the reasoning."""
        if self._state is _State.ANSWERING:
            return self._shown(piece), ""
        text, self._held = self._held + piece, ""
        if self._state is _State.BEFORE:
            return self._begin(text)
        return self._think(text)

    def flush(self) -> tuple[str, str]:
        """Ends the text: returns what was held back as the possible start of a tag."""
        held, self._held = self._held, ""
        return ("", held) if self._state is _State.THINKING else (held, "")

    def _begin(self, text: str) -> tuple[str, str]:
        start = text.lstrip()
        if OPEN.startswith(start):  # also when nothing but white space has come
            if start != OPEN:
                self._held = text
                return "", ""
        elif not start.startswith(OPEN):
            self._state = _State.ANSWERING
            return text, ""
        self._state, self._after_mark = _State.THINKING, True
        return self._think(start.removeprefix(OPEN))

    def _think(self, text: str) -> tuple[str, str]:
        thinking, mark, answer = text.partition(CLOSE)
        if mark:
            thinking = self._shown(thinking)
            self._state, self._after_mark = _State.ANSWERING, True
            return self._shown(answer), thinking
        num_held = next((size for size in range(len(CLOSE) - 1, 0, -1) if text.endswith(CLOSE[:size])), 0)
        self._held = text[len(text) - num_held :]
        return "", self._shown(text[: len(text) - num_held])

    def _shown(self, text: str) -> str:
        """Removes the white space that follows a tag."""
        if self._after_mark:
            text = text.lstrip()
            self._after_mark = not text
        return text
