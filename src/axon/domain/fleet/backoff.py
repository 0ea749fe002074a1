"""How long a replica that ended by itself waits before it is started again (exponential backoff). Pure."""

FIRST_S = 1.0
MOST_S = 60.0
STEADY_S = 120.0
"""A replica that ran for this long before it ended waits as one that ended for the first time."""


def delay_s(failures: int) -> float:
    """Seconds to wait after ``failures`` runs that ended soon, one after the other."""
    return min(MOST_S, FIRST_S * 2.0 ** min(failures, 16))


def failures_after(failures: int, ran_s: float) -> int:
    """The number of failures in a row, when a run of ``ran_s`` seconds ends after ``failures`` before it."""
    return 0 if ran_s >= STEADY_S else failures
