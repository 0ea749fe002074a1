"""Ratios of interleaved pairs of measurements, and how far they can be trusted. Pure."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev

from benchmarks.measures.figures import Figures
from benchmarks.measures.svg import Series, line_chart

_T = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
"""Student's t of 95 percent, by the number of pairs less one."""


def interval(ratios: Sequence[float]) -> Figures:
    """The geometric mean of ratios and its 95 percent interval, by Student's t over their logarithms."""
    logs = [math.log(ratio) for ratio in ratios]
    mean, half = fmean(logs), math.inf
    if len(logs) > 1:
        factor = _T[len(logs) - 2] if len(logs) - 2 < len(_T) else 1.96
        half = factor * stdev(logs) / math.sqrt(len(logs))
    return {"ratio": math.exp(mean), "low": math.exp(mean - half), "high": math.exp(mean + half)}


def speed_chart(title: str, found: Mapping[str, Mapping[int, Figures]]) -> str:
    """Speed-up against acceptance: a dot for each number of streams, a colour for each kind of text."""
    series = [
        Series(name=kind, points=[(each["acceptance"], each["ratio"]) for each in rows.values()], dots=True)
        for kind, rows in found.items()
    ]
    return line_chart(title, x_label="drafts accepted", y_label="times as fast", series=series)


def batch_chart(title: str, found: Mapping[str, Mapping[int, Figures]]) -> str:
    """Speed-up against streams: a line for each kind of text."""
    series = [
        Series(name=kind, points=[(num, each["ratio"]) for num, each in rows.items()]) for kind, rows in found.items()
    ]
    return line_chart(title, x_label="streams", y_label="times as fast", series=series)
