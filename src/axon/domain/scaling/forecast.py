"""A forecast of the load at the time at which a replica ordered now would serve. Pure functions over a history.

The level is the mean over the longest window that the shorter ones do not contradict: the intersection of their
confidence intervals (ICI rule, Goldenshluger and Nemirovski 1997). So noise moves it little under a steady load, and a
step moves it within seconds. A rise that noise does not explain is extrapolated; a fall is not.
"""

from axon.domain.scaling.history import LONGEST_S, History

_WINDOWS_S = (10.0, 20.0, 60.0, 180.0, LONGEST_S)
_SLOPES_S = (15.0, 60.0, 240.0)
"""Windows whose mean is compared with that of the window before it, for a trend."""
_AGES_S = tuple(sorted({*_WINDOWS_S, *_SLOPES_S, *(2 * span_s for span_s in _SLOPES_S)}))
_Z = 3.5
"""Standard errors by which the mean of a shorter window must differ to contradict a longer one."""

Sums = dict[float, tuple[float, int]]
"""Sum and number of the samples that are younger than an age."""


def ahead(history: History, now: float, horizon_s: float, *, growth_limit: float) -> float:
    """The load expected in ``horizon_s`` seconds, at most ``growth_limit`` times the present one."""
    sums = dict(zip(_AGES_S, history.sums(now, _AGES_S), strict=True))
    present, rising = level(history, sums), slope(history, sums)
    # The middle of the newest window lies in the past: a rise has gone on since.
    return max(present, min(present + rising * (horizon_s + _WINDOWS_S[0] / 2), growth_limit * present))


def level(history: History, sums: Sums) -> float:
    """The present load. It never falls when a sample rises: means, their bounds, least and largest are monotone."""
    low, high, mean = 0.0, float("inf"), 0.0
    for span_s in _WINDOWS_S:
        total, num = sums[span_s]
        if num:
            mean = total / num
            spread = history.spread(mean, num, _Z)
            low, high = max(low, mean - spread), min(high, mean + spread)
    return max(low, min(high, mean))


def slope(history: History, sums: Sums) -> float:
    """The rise per second that noise does not explain: the largest over the windows; 0 for none."""
    steepest = 0.0
    for span_s in _SLOPES_S:
        recent, num_recent = sums[span_s]
        total, num = sums[2 * span_s]
        num_before = num - num_recent
        if num_recent < 2 or num_before < 2:
            continue
        mean, before = recent / num_recent, (total - recent) / num_before
        low = mean - history.spread(mean, num_recent, _Z)
        high = before + history.spread(before, num_before, _Z)
        steepest = max(steepest, (low - high) / span_s)
    return steepest
