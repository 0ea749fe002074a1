"""Limits how often one log line is repeated. No I/O, no clock: the caller says what time it is."""

EVERY_S = 10.0
"""Seconds between two lines that say the same while a service is away."""


class Sparse:
    """Lets the first line pass, then at most one in ``every_s`` seconds, and counts those it holds back."""

    def __init__(self, every_s: float = EVERY_S) -> None:
        self._every_s = every_s
        self._next_at = 0.0
        self._num_held_back = 0
        self._is_open = True

    def pass_at(self, now: float) -> int | None:
        """None to suppress this line; otherwise the number of lines suppressed since the last one."""
        if not self._is_open and now < self._next_at:
            self._num_held_back += 1
            return None
        held_back, self._num_held_back = self._num_held_back, 0
        self._next_at, self._is_open = now + self._every_s, False
        return held_back

    def reset(self) -> None:
        """Resets after a success, so that the next failure is logged at once."""
        self._is_open, self._num_held_back = True, 0
