"""The text of one choice while a parser reads it, and what the parser has found in it. No I/O, no clock, no format.

A parser is a generator: it consumes the buffer, yields when it needs more text, and sees ``ended`` when no more comes.
Its findings depend on the text alone, not on how the text was cut into pieces.
"""

import re
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import NamedTuple, TypeVar

from axon.domain.content.tool_call import CallPiece
from axon.text.tools.pattern import Pattern

T = TypeVar("T")
Reading = Generator[None, None, T]
"""A part of a parser: it yields when it needs more text, and returns what it found."""

CONTROL = "\U0010ffff"
"""Stands before the text of a control token, which tells it from the same characters in ordinary text. It is a Unicode
noncharacter, which no text has a use for."""


class Said(NamedTuple):
    """What a piece of text adds to the answer: its text, and pieces of calls after it."""

    text: str = ""
    calls: tuple[CallPiece, ...] = ()


class Enough(Exception):
    """The choice has as many calls as it may have; its parser stops here."""


class CutOff(Exception):
    """The text was cut off where a call may have begun. The parser stops here: what it has not decided is no text."""


class Tape:
    """The text that is not read yet, and the findings that were not taken yet."""

    def __init__(self, max_calls: int = 0) -> None:
        """``max_calls`` of 0 stands for any number."""
        self.buffer = ""
        self.ended = False
        self.cut_off = False
        """Whether the text ended because the answer may have no more tokens, not by the model's own choice."""
        self.num_calls = 0
        """Calls whose arguments are complete."""
        self._max_calls = max_calls
        self.num_opened = 0
        """Calls that have begun."""
        self._text = ""
        self._space = ""
        """White space that is part of the answer unless a call follows."""
        self._calls: list[CallPiece] = []

    def take(self) -> Said:
        """The findings since the last time."""
        if self.ended and not self.num_opened:
            self._text, self._space = self._text + self._space, ""
        said = Said(self._text, tuple(self._calls))
        self._text, self._calls = "", []
        return said

    def cut(self, length: int) -> str:
        """Removes the first characters of the buffer and returns them."""
        piece, self.buffer = self.buffer[:length], self.buffer[length:]
        return piece

    def say(self, text: str) -> None:
        """Adds to the answer's text. White space at its end is held back: before a call it is no part of the answer."""
        if not text:
            return
        text = self._space + text.replace(CONTROL, "")
        bare = text.rstrip()
        self._text, self._space = self._text + bare, text[len(bare) :]

    def open_call(self, name: str) -> None:
        """A call of this function begins."""
        self._space = ""
        self._calls.append(CallPiece(self.num_opened, name))
        self.num_opened += 1

    def add_arguments(self, arguments: str) -> None:
        """Adds to the arguments of the open call."""
        if not arguments:
            return
        index, last = self.num_opened - 1, self._calls[-1] if self._calls else None
        arguments = arguments.replace(CONTROL, "")
        if last is not None and last.index == index:
            self._calls[-1] = last.plus(arguments)
        else:
            self._calls.append(CallPiece(index, "", arguments))

    def close_call(self) -> None:
        """The open call is complete; raises ``Enough`` if it was the last one that the choice may have."""
        self.num_calls += 1
        if self.num_calls == self._max_calls:
            raise Enough

    def has_more(self) -> Reading[bool]:
        """Waits for more text; False at its end. Raises ``CutOff`` if the text was cut off there."""
        if self.cut_off:
            raise CutOff
        if self.ended:
            return False
        yield
        return True

    def expect(self, pattern: Pattern, *, closes: bool = False) -> Reading[re.Match[str] | None]:
        """Consumes a match at the start of the buffer; without one it consumes nothing and returns None.

        ``closes``: the pattern belongs to a call that has begun, so a part of it at the end of the text is dropped.
        """
        while True:
            if found := pattern.match(self.buffer):
                self.cut(found.end())
                return found
            if not pattern.may_begin(self.buffer):
                return None
            if not (yield from self.has_more()):
                self.buffer = "" if closes else self.buffer
                return None

    def say_until(self, *marks: str) -> Reading[str]:
        """Says everything up to the first of these marks, which it consumes and returns; empty at the end. A part of a
        mark at the end is text, unless the text was cut off there."""
        mark = yield from self.pass_until(marks, self.say)
        if not mark and not self.cut_off:
            self.say(self.cut(len(self.buffer)))
        return mark

    def say_rest(self) -> Reading[None]:
        """Says everything up to the end."""
        yield from self.pass_until((), self.say)

    def pass_until(self, marks: Sequence[str], take: Callable[[str], None]) -> Reading[str]:
        """Gives ``take`` the text up to the first of these marks as it comes; consumes and returns the mark. At the end
        of the text it returns an empty string, and leaves in the buffer what may be the beginning of a mark."""
        while True:
            found = min(((at, mark) for mark in marks if (at := self.buffer.find(mark)) >= 0), default=None)
            if found is not None:
                take(self.cut(found[0]))
                self.cut(len(found[1]))
                return found[1]
            num_held = _num_held(self.buffer, marks)
            if len(self.buffer) > num_held:
                take(self.cut(len(self.buffer) - num_held))
            if self.ended:
                return ""
            yield

    def read_object(self, take: Callable[[str], None]) -> Reading[bool]:
        """Consumes a JSON object, or a list, and gives its text to ``take`` as it comes; False if the text ends before
        it."""
        depth, in_string, escaped = 0, False, False
        while True:
            for at, char in enumerate(self.buffer):
                if in_string:
                    in_string = escaped or char != '"'
                    escaped = not escaped and char == "\\"
                elif char == '"':
                    in_string = True
                elif char in "{[":
                    depth += 1
                elif char in "}]":
                    depth -= 1
                    if depth <= 0:
                        take(self.cut(at + 1))
                        return True
            take(self.cut(len(self.buffer)))
            if self.ended:
                return False
            yield


def _num_held(text: str, marks: Iterable[str]) -> int:
    """Length of the longest end of the text that could begin one of the marks."""
    most = 0
    for mark in marks:
        for length in range(min(len(text), len(mark) - 1), most, -1):
            if text.endswith(mark[:length]):
                most = length
                break
    return most
