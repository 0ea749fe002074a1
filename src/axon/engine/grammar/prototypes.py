"""Matchers at the start of one grammar, which those of sequences are copied from. Compiles nothing itself.

Copies of one llguidance matcher share its lexer and the lock on it, so threads that fill their masks wait for each
other. So several are compiled of a grammar that several sequences use, if it compiles quickly: one for each thread.
"""

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from llguidance import LLMatcher

_QUICK_S = 0.02
"""A grammar that takes longer to compile is compiled once."""


class Prototypes:
    """Up to ``most`` matchers of one grammar, handed out in turn."""

    def __init__(self, compile: "Callable[[], LLMatcher]", *, most: int) -> None:
        self._compile = compile
        self._most = most
        self._made: list[LLMatcher] = []
        self._num_taken = 0
        self._slowest_s = 0.0

    def __len__(self) -> int:
        return len(self._made)

    def take(self) -> "LLMatcher":
        """A matcher to be copied: the next one, compiled now if there are fewer than there may be."""
        number = self._num_taken % (self._most if self._slowest_s < _QUICK_S else 1)
        self._num_taken += 1
        if number >= len(self._made):
            began_at = time.perf_counter()
            self._made.append(self._compile())
            self._slowest_s = max(self._slowest_s, time.perf_counter() - began_at)
        return self._made[number % len(self._made)]
