"""A forecast of the load at the time at which a replica ordered now would serve. Pure functions over a history.

The level is the mean over the longest window, as far as the confidence intervals of shorter ones allow it (after the
ICI rule, Goldenshluger and Nemirovski 1997). So noise moves it little under a steady load, and a
step moves it within seconds. A rise that noise does not explain is extrapolated; a fall is not.
"""

from axon.domain.scaling.history import LONGEST_S, History

_WINDOWS_S = (10.0, 20.0, 60.0, 180.0, LONGEST_S)
_SLOPES_S = (6.0, 15.0, 60.0)
"""Windows whose mean is compared with that of the window before it, for a trend."""
LONGEST_SLOPE_S = 2 * _SLOPES_S[-1]
"""Age of the oldest sample that a trend is found in."""
_SURGES_S, _BEFORE_S = (4.0, 20.0), 180.0
_AGES_S = tuple(sorted({*_SURGES_S, *_WINDOWS_S, *_SLOPES_S, *(2 * span_s for span_s in _SLOPES_S)}))
_Z = 3.5
"""Standard errors by which the mean of a shorter window must differ to contradict a longer one."""
_SURGE_Z = 5.0
_SLOPE_Z, _OVER_Z = 3.0, 1.0
"""Standard errors of both means that a rise must exceed; and within which a shorter window says that it is over."""

_DAMPING = 0.6
"""Part of a rise that is extrapolated (damped trend, Gardner and McKenzie 1985): most rises end before the horizon."""

Sums = dict[float, tuple[float, int]]
"""Sum and number of the samples that are younger than an age."""


def ahead(history: History, now: float, horizon_s: float, *, growth_limit: float) -> float:
    """The load expected in ``horizon_s`` seconds, at most ``growth_limit`` times the present one."""
    sums = dict(zip(_AGES_S, history.sums(now, _AGES_S), strict=True))
    present, surged = level(history, sums), surge(history, sums, now)
    rising = slope(history, sums) if surged else 0.0
    present = max(present, surged)
    # The newest windows lie in the past: a rise has gone on since.
    return max(present, min(present + _DAMPING * rising * (horizon_s + _SURGES_S[0]), growth_limit * present))


def level(history: History, sums: Sums) -> float:
    """The present load: the mean of the longest window, moved into the confidence interval of each shorter one in turn.
    So a shorter window counts as far as it contradicts the longer ones. The level never falls when a sample rises:
    means, their bounds, and a value held between bounds are monotone."""
    found: float | None = None
    for span_s in reversed(_WINDOWS_S):
        total, num = sums[span_s]
        if num:
            mean = total / num
            spread = history.spread(mean, num, _Z)
            found = mean if found is None else max(mean - spread, min(mean + spread, found))
    return found or 0.0


def surge(history: History, sums: Sums, now: float) -> float:
    """The load of the last seconds, if it is above the minutes before them by more than noise explains; 0 if not. Only
    in a surge is a rise extrapolated: neighbouring seconds often differ. One of a few seconds must show without its
    largest sample: some very long requests at once are none."""
    found = 0.0
    for span_s in _SURGES_S:
        recent, num_recent = sums[span_s]
        is_short = span_s == _SURGES_S[0]
        least, num_least = history.without_largest(now, span_s) if is_short else (recent, num_recent)
        total, num = sums[_BEFORE_S]
        num_before = num - num_recent
        if not num_least or num_before < num_recent:
            continue
        mean, before = least / num_least, (total - recent) / num_before
        bound = mean - history.spread(mean, num_least, _SURGE_Z)
        if bound > before + history.spread(before, num_before, _SURGE_Z):
            found = max(found, recent / num_recent)
    return found


def slope(history: History, sums: Sums) -> float:
    """The rise per second that noise does not explain: the largest over the windows; 0 for none. A shorter window that
    sees less bounds what a longer one sees: that rise is over."""
    steepest, bound = 0.0, float("inf")
    for span_s in _SLOPES_S:
        recent, num_recent = sums[span_s]
        total, num = sums[2 * span_s]
        num_before = num - num_recent
        if num_recent < 2 or num_before < 2:
            continue
        mean, before = recent / num_recent, (total - recent) / num_before
        noise = history.spread(mean, num_recent, 1.0), history.spread(before, num_before, 1.0)
        low = mean - _SLOPE_Z * noise[0] - before - _SLOPE_Z * noise[1]
        steepest = max(steepest, min(low / span_s, bound))
        bound = min(bound, max(0.0, mean + _OVER_Z * noise[0] - before + _OVER_Z * noise[1]) / span_s)
    return steepest
