"""Limits how often a dependency's failure is logged: not every request that fails writes a line. No I/O, no clock."""

from collections import OrderedDict

from axon.errors import DependencyDown

_EVERY_S = 5.0
"""The same failure is logged at most this often."""
_MAX_KINDS = 100
"""Size of the LRU cache of kinds of failures."""


class Outages:
    """Counts, for each kind of failure, the requests that failed of it since it was last logged."""

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[str, str], tuple[float, int]] = OrderedDict()
        """By (code, message): when the failure was last logged, in seconds, and how many requests failed since."""

    def note(self, error: DependencyDown, now: float) -> int:
        """Counts one failure. Returns the number of failures that a log line should report now; 0 means: do not log."""
        kind = (error.code, error.message)
        logged_at, num_since = self._seen.get(kind, (now - _EVERY_S, 0))
        is_due = now - logged_at >= _EVERY_S
        self._seen[kind] = (now, 0) if is_due else (logged_at, num_since + 1)
        self._seen.move_to_end(kind)
        if len(self._seen) > _MAX_KINDS:
            self._seen.popitem(last=False)
        return num_since + 1 if is_due else 0
