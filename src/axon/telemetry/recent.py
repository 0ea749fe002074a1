"""The last log lines of a process, in memory. Knows no logger: it is given lines that are redacted already."""

import threading
from collections import deque
from dataclasses import dataclass

from axon.telemetry.events.event import LEVELS

MAX_LINES = 1000
MAX_CHARS = 2 << 20
"""Characters of all lines together, each of which takes one to four bytes."""
MAX_LINE_CHARS = 64 << 10
"""A longer line, such as a deep traceback, is not kept; a later line says nothing of it."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its level, and its JSON object as text."""

    level: str
    text: str


class RecentLines:
    """A ring buffer of lines, bounded in number and in size. Any thread may call it."""

    def __init__(self, *, max_lines: int = MAX_LINES, max_chars: int = MAX_CHARS) -> None:
        self._max_lines, self._max_chars = max_lines, max_chars
        self._lines: deque[Line] = deque()
        self._num_chars = 0
        self._lock = threading.Lock()

    def add(self, level: str, text: str) -> None:
        """Adds a line, and drops the oldest ones that no longer fit."""
        if len(text) > MAX_LINE_CHARS:
            return
        with self._lock:
            self._lines.append(Line(level if level in LEVELS else "error", text))
            self._num_chars += len(text)
            while len(self._lines) > self._max_lines or self._num_chars > self._max_chars:
                self._num_chars -= len(self._lines.popleft().text)

    def last(self, limit: int = MAX_LINES, *, level: str = "debug") -> list[str]:
        """The last ``limit`` lines of at least this level, oldest first."""
        wanted = frozenset(LEVELS[LEVELS.index(level) :])
        with self._lock:
            found = [each.text for each in self._lines if each.level in wanted]
        return found[-limit:] if limit > 0 else []

    def check(self) -> None:
        """Asserts that the count of characters is that of the lines."""
        with self._lock:
            assert self._num_chars == sum(len(each.text) for each in self._lines)
