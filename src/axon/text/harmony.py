"""Finds the messages of an answer in OpenAI's harmony format (gpt-oss), in text that comes in pieces.

An answer is a row of messages, each a header and a body: ``<|channel|>analysis<|message|>…<|end|><|start|>assistant
<|channel|>final<|message|>…<|return|>``. The prompt ends with ``<|start|>assistant``, so the first header has begun.
The body of the channel ``analysis`` is reasoning, that of every other one is the answer; headers belong to neither. A
message whose header says ``to=functions.NAME``, in its role or its channel, is a call of that function. The marks are
control tokens, so they are known by their ids: the same words in text are text.
"""

import re

from axon.text.tokenizer import Tokenizer

HARMONY = "harmony"
"""The reasoning mode of answers in this format."""
CHANNEL, CONSTRAIN, MESSAGE = "<|channel|>", "<|constrain|>", "<|message|>"
_WITHIN_HEADER = (CHANNEL, CONSTRAIN)
_MARKS = ("<|start|>", CHANNEL, CONSTRAIN, MESSAGE, "<|end|>", "<|return|>", "<|call|>")
_THINKING = re.compile(re.escape(CHANNEL) + r"\s*analysis\b")
_FUNCTION = re.compile(r"(?:^|\s)to=functions\.([\w.-]+)")
_MAX_HEADER_CHARS = 256
"""A header that is longer is none: its text is the answer."""


def is_harmony(template: str) -> bool:
    """Whether a chat template writes in this format."""
    return CHANNEL in template and MESSAGE in template


def has_marks(tokenizer: Tokenizer) -> bool:
    """Whether the tokenizer has the format's control tokens."""
    return {CHANNEL, MESSAGE} <= tokenizer.control_texts


class HarmonyReader:
    """Reads one choice's text, and holds back one header at most."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        known = [mark for mark in _MARKS if mark in tokenizer.control_texts]
        self._marks = {tokenizer.encode(mark, parse_special=True)[0]: mark for mark in known}
        self._header: str | None = ""
        """The text behind the header's last mark; None within a body."""
        self._before = ""
        """The header up to that mark."""
        self._has_marks = False
        self.is_thinking = False
        """Whether the body at hand is reasoning."""
        self.function = ""
        """The function that the body at hand calls; empty if it is no call."""

    def push(self, piece: str) -> str:
        """Returns what a piece of text adds to the body at hand: nothing in a header."""
        if self._header is None:
            return piece
        self._header += piece
        if len(self._header) <= _MAX_HEADER_CHARS:
            return ""
        said, self._header, self.is_thinking = self._header, None, False
        return said

    def see(self, token_id: int) -> bool:
        """Whether a token is a mark, which ends what was before it: a body, or a part of a header."""
        mark = self._marks.get(token_id)
        if mark is None:
            return False
        header = (self._before + (self._header or ""))[-_MAX_HEADER_CHARS:]
        called = _FUNCTION.search(header) if mark == MESSAGE else None
        self.function = called[1] if called else ""
        if mark == MESSAGE:
            self.is_thinking = not called and _THINKING.search(header) is not None
        self._before = header + mark if mark in _WITHIN_HEADER else ""
        self._header, self._has_marks = None if mark == MESSAGE else "", True
        return True

    def flush(self) -> str:
        """Ends the text: if no mark has come, the model does not write in this format, and what was held back is the
        answer."""
        held, self._header = self._header, None
        return held if held and not self._has_marks else ""
