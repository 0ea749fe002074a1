"""The tokens per second that an engine serves when all its slots are taken. No I/O, no clock: it is told the time.

The estimate is an exponential moving average over windows in which every slot was taken; it is kept meanwhile. An
engine with free slots serves less than it could, and so says nothing of how long a queue would take.
"""

_WINDOW_S = 1.0
_SMOOTHING = 0.3
"""The newest window's weight in the moving average."""


class Throughput:
    """``served`` for every token, ``look`` every second or so."""

    def __init__(self) -> None:
        self.tokens_per_s = 0.0
        """0 until the engine has been busy for a whole window."""
        self._since: float | None = None
        """The monotonic time at which the present window began; None while the engine is not busy."""
        self._served = 0

    def served(self, tokens: int) -> None:
        """Counts tokens that were computed or found in the cache, those of a prompt included."""
        self._served += tokens

    def look(self, now: float, *, is_busy: bool) -> None:
        """Ends a window when its time has come; ``is_busy``: every slot is taken now."""
        if not is_busy:
            self._since = None
        elif self._since is None:
            self._since, self._served = now, 0
        elif now - self._since >= _WINDOW_S:
            if self._served:  # without a token the engine hangs or restarts, which says nothing of its speed
                rate = self._served / (now - self._since)
                self.tokens_per_s += (rate - self.tokens_per_s) * (_SMOOTHING if self.tokens_per_s else 1.0)
            self._since, self._served = now, 0
