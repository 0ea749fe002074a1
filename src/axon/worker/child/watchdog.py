"""A watchdog timer for an engine that has work and makes no step. No I/O, no clock: it is told the time.

The first step of an engine may take as long as its start, because memory is touched and kernels are chosen. After that
a step may take ``step_timeout_s``, or ten times the longest step so far, because a large model's steps are long.
"""

_LONGEST_STEP_FACTOR = 10


class Watchdog:
    """Times one engine after the other; all times are monotonic seconds."""

    def __init__(self, *, step_timeout_s: float, first_step_timeout_s: float) -> None:
        self._step_timeout_s = step_timeout_s
        self._first_step_timeout_s = max(first_step_timeout_s, step_timeout_s)
        self._since = 0.0
        self._has_stepped = False
        self._longest_s = 0.0
        """The longest step but the first, which says nothing of the others."""

    @property
    def timeout_s(self) -> float:
        """Seconds for which an engine with work may make no step."""
        if not self._has_stepped:
            return self._first_step_timeout_s
        return min(max(self._step_timeout_s, _LONGEST_STEP_FACTOR * self._longest_s), self._first_step_timeout_s)

    def started(self) -> None:
        """A new engine has started, which has not made a step."""
        self._has_stepped, self._longest_s = False, 0.0

    def got_work(self, now: float) -> None:
        """The engine was idle until now."""
        self._since = now

    def stepped(self, now: float) -> None:
        """The engine has made a step."""
        if self._has_stepped:
            self._longest_s = max(self._longest_s, now - self._since)
        self._has_stepped, self._since = True, now

    def silent_s(self, now: float) -> float:
        """Seconds since the last step, or since the engine had work."""
        return now - self._since

    def hangs(self, now: float) -> bool:
        """Whether an engine that has work has made no step for too long."""
        return self.silent_s(now) > self.timeout_s
