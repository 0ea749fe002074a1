"""Does the engine hang? Measures the silence of one that has work. Pure: it is told the time.

The first step of an engine's life may take as long as its start: memory is touched, kernels are chosen. After that a
step may take ``step_timeout_s``, or ten times the longest one since where a large model is slow by nature.
"""

_TIMES = 10


class Watchdog:
    """One engine after the other."""

    def __init__(self, *, step_timeout_s: float, first_step_timeout_s: float) -> None:
        self._step_timeout_s = step_timeout_s
        self._first_step_timeout_s = max(first_step_timeout_s, step_timeout_s)
        self._since = 0.0
        self._has_stepped = False
        self._longest_s = 0.0
        """Of the steps after the first, which tells nothing of them."""

    @property
    def patience_s(self) -> float:
        """How long the engine may be silent while it has work."""
        if not self._has_stepped:
            return self._first_step_timeout_s
        return min(max(self._step_timeout_s, _TIMES * self._longest_s), self._first_step_timeout_s)

    def started(self) -> None:
        """A new engine, which has not made a step."""
        self._has_stepped, self._longest_s = False, 0.0

    def got_work(self, now: float) -> None:
        """It had nothing to do until now."""
        self._since = now

    def stepped(self, now: float) -> None:
        """It has made a step."""
        if self._has_stepped:
            self._longest_s = max(self._longest_s, now - self._since)
        self._has_stepped, self._since = True, now

    def silent_s(self, now: float) -> float:
        return now - self._since

    def hangs(self, now: float) -> bool:
        """Whether an engine that has work was silent for too long."""
        return self.silent_s(now) > self.patience_s
