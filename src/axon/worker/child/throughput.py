"""How many tokens a second a worker serves when it is busy: learned while it is, kept while it is not. Pure.

A worker with free slots serves less than it could, which says nothing of how long a queue would take.
"""

_WINDOW_S = 1.0
_LEARNING = 0.3
"""Weight of the newest window."""


class Service:
    """Told of every token, and looked at every second or so."""

    def __init__(self) -> None:
        self.tokens_per_s = 0.0
        """0 before it has ever been busy."""
        self._since: float | None = None
        """Since when it has been busy without a pause; None: it is not."""
        self._served = 0

    def served(self, tokens: int) -> None:
        """So many were computed, a prompt's included."""
        self._served += tokens

    def look(self, now: float, *, is_busy: bool) -> None:
        """Whether every slot is taken now."""
        if not is_busy:
            self._since = None
        elif self._since is None:
            self._since, self._served = now, 0
        elif now - self._since >= _WINDOW_S:
            if self._served:  # without a token it hangs or starts anew: that says nothing of what it serves
                rate = self._served / (now - self._since)
                self.tokens_per_s += (rate - self.tokens_per_s) * (_LEARNING if self.tokens_per_s else 1.0)
            self._since, self._served = now, 0
