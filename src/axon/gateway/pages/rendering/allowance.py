"""Processor time and length for the parts of a text that can do without: colours of code, formulas. Works in a main
thread alone.

A regular expression that backtracks for ever is interrupted: Python's matcher looks for signals as it goes. What a
library does not let be interrupted ends with its process, by the time for the whole text.
"""

import signal
from collections.abc import Callable
from types import FrameType

_AGAIN_S = 0.05
"""Seconds of processor time after which work that goes on is interrupted again: Python drops what is raised in a
finalizer."""


class _Spent(BaseException):
    """The time is over. It is no ``Exception``, which a library may catch."""


class Allowance:
    """Seconds of processor time, and characters of HTML, that all parts of a text share."""

    def __init__(self, seconds: float, chars: int) -> None:
        self._left_s, self._left_chars = seconds, chars
        self._is_running = False

    def within(self, work: Callable[[], str]) -> str | None:
        """Returns what the work returns; None if the time is over before it ends, or was before it began, or if it
        is longer than what is left."""
        made = self._in_time(work)
        if made is None or len(made) > self._left_chars:
            return None
        self._left_chars -= len(made)
        return made

    def _in_time(self, work: Callable[[], str]) -> str | None:
        if self._left_s <= 0:
            return None
        try:
            self._is_running = True
            before = signal.signal(signal.SIGVTALRM, self._end)
            signal.setitimer(signal.ITIMER_VIRTUAL, self._left_s, _AGAIN_S)
            try:
                return work()
            finally:
                self._is_running = False
                self._left_s, _ = signal.setitimer(signal.ITIMER_VIRTUAL, 0)
                signal.signal(signal.SIGVTALRM, before)
        except _Spent:
            self._left_s = 0.0
            return None

    def _end(self, number: int, frame: FrameType | None) -> None:
        """Interrupts the work, if it has not ended meanwhile."""
        if self._is_running:
            raise _Spent
