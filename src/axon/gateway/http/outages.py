"""Which dependency's failure is due to be logged again: not one line for every request it fails. No I/O, no clock."""

from collections import OrderedDict

from axon.errors import DependencyDown

_EVERY_S = 5.0
"""The same failure is logged at most this often."""
_MAX_KINDS = 100


class Outages:
    """Counts the requests that each kind of failure has turned away since it was last logged."""

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[str, str], tuple[float, int]] = OrderedDict()
        """Code and message: when it was logged, and how many came since."""

    def note(self, error: DependencyDown, now: float) -> int:
        """How many failures a line stands for that is to be written now; 0: write none."""
        kind = (error.code, error.message)
        logged_at, num_since = self._seen.get(kind, (now - _EVERY_S, 0))
        is_due = now - logged_at >= _EVERY_S
        self._seen[kind] = (now, 0) if is_due else (logged_at, num_since + 1)
        self._seen.move_to_end(kind)
        if len(self._seen) > _MAX_KINDS:
            self._seen.popitem(last=False)
        return num_since + 1 if is_due else 0
