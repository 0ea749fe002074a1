"""Finds stop strings in text that comes in pieces. Knows no tokens.

The stop string whose end comes first wins, the longest of those that end together: so the cut does not depend on
how the text was split into pieces.
"""

from collections.abc import Iterable


class StopScanner:
    """Cuts one choice's text before its first stop string."""

    def __init__(self, stops: Iterable[str]) -> None:
        self._stops = [stop for stop in stops if stop]
        self._held = ""
        self.matched = ""
        """The stop string that was hit; empty before."""

    def push(self, piece: str) -> tuple[str, bool]:
        """Returns the text that may be shown and whether a stop string was hit; after a hit nothing comes any more."""
        if self.matched:
            return "", True
        if not self._stops:
            return piece, False
        text = self._held + piece
        if (found := self._find(text)) is not None:
            end, start = found
            self._held, self.matched = "", text[start:end]
            return text[:start], True
        cut = len(text) - self._num_held(text)
        self._held = text[cut:]
        return text[:cut], False

    def flush(self) -> str:
        """Ends the text: returns what was held back as the possible start of a stop string."""
        held, self._held = self._held, ""
        return held

    def _find(self, text: str) -> tuple[int, int] | None:
        """The end and the start of the stop string that wins; None if there is none."""
        ends_and_starts = [(start + len(stop), start) for stop in self._stops if (start := text.find(stop)) >= 0]
        return min(ends_and_starts, default=None)

    def _num_held(self, text: str) -> int:
        """Length of the longest end of the text that could begin a stop string."""
        longest = min(len(text), max(map(len, self._stops), default=0) - 1)
        for length in range(longest, 0, -1):
            if any(stop.startswith(text[-length:]) for stop in self._stops):
                return length
        return 0
