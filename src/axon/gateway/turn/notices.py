"""Decides when a reader is told again how its turn waits for a worker. No I/O, no clock; knows no HTTP."""

from collections.abc import Callable

from axon.gateway.offers.wait import Wait

_LEAST_S = 2.0
"""Seconds between two notices at least."""
_SLACK_S, _SLACK = 2.0, 0.25
"""A forecast counts as changed when it is off by more than this many seconds and this fraction of itself."""


class Notices:
    """Notices of one reader. Times are monotonic seconds."""

    def __init__(self, look: Callable[[], Wait | None], told: Wait | None = None, *, now: float) -> None:
        """``look`` returns how the turn waits now; ``told`` is what the reader knows already."""
        self._look, self._told, self._told_at = look, told, now

    def due(self, now: float) -> Wait | None:
        """What the reader is to be told now: nothing while nothing has changed, or too soon after the last notice."""
        if self._told is not None and now - self._told_at < _LEAST_S:
            return None
        wait = self._look()
        if wait is None or (self._told is not None and not _is_news(wait, self._told, now - self._told_at)):
            return None
        self._told, self._told_at = wait, now
        return wait


def _is_news(wait: Wait, told: Wait, elapsed_s: float) -> bool:
    """Whether a reader that was told one thing ``elapsed_s`` seconds ago does not know the other."""
    if (wait.state, wait.position) != (told.state, told.position):
        return True
    if wait.expected_s is None or told.expected_s is None:
        return wait.expected_s != told.expected_s
    off_s = abs(wait.expected_s - max(0.0, told.expected_s - elapsed_s))
    return off_s > max(_SLACK_S, _SLACK * wait.expected_s)
