"""The event loop's lag as a histogram: read from a server's metrics, subtracted, summed up. Measures nothing itself.

The server notes how late its loop wakes a sleeper (``axon_event_loop_lag_seconds``); ``lifecycle.lag_every_s`` says how
often. The lag is how long anything else that became ready had to wait, too.
"""

import math
import re
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from benchmarks.measures.figures import Figures

EVERY_S = 0.005
"""Seconds between two of the server's measurements while a benchmark looks: a pause is seen but for this much of it."""
BOUND_S = 0.05
_BUCKET = re.compile(r'^axon_event_loop_lag_seconds_bucket\{le="([^"]+)"\} (\S+)$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Numbers of measurements by the upper bound of their bucket in seconds, the last one infinite."""

    counts: Mapping[float, int]

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def since(self, earlier: "Histogram") -> "Histogram":
        """What has come since an earlier reading of the same metric."""
        return Histogram({bound: count - earlier.counts.get(bound, 0) for bound, count in self.counts.items()})

    def quantile_s(self, share: float) -> float:
        """Interpolated within its bucket, as Prometheus does; the last finite bound for what lies beyond it."""
        rank, below, low_s = share * self.total, 0, 0.0
        for bound_s, count in self.counts.items():
            if count and below + count >= rank:
                return low_s if math.isinf(bound_s) else low_s + (bound_s - low_s) * (rank - below) / count
            below, low_s = below + count, bound_s
        return 0.0

    @property
    def at_most_s(self) -> float:
        """The upper bound of the highest bucket that has any: no measurement was longer."""
        return max((bound for bound, count in self.counts.items() if count), default=0.0)

    def share_above(self, bound_s: float) -> float:
        """Share of the measurements in buckets above this bound."""
        return sum(count for bound, count in self.counts.items() if bound > bound_s) / max(1, self.total)


def parse_lag(metrics: str) -> Histogram:
    """The histogram in the text of a server's ``/metrics``."""
    found = [(float(bound), int(float(count))) for bound, count in _BUCKET.findall(metrics)]
    return Histogram({bound: count - before for (_, before), (bound, count) in pairwise([(0.0, 0), *found])})


def read_lag(metrics_port: int) -> Histogram:
    """The histogram since the server's start."""
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=30) as response:
        return parse_lag(response.read().decode())


def lag_figures(lag: Histogram) -> Figures:
    """Percentiles in milliseconds; the largest as the bound that it did not exceed."""
    return {
        "lag_p50_ms": 1000 * lag.quantile_s(0.50),
        "lag_p99_ms": 1000 * lag.quantile_s(0.99),
        "lag_max_at_most_ms": 1000 * lag.at_most_s,
        "lag_above_50_ms_share": lag.share_above(BOUND_S),
    }


def buckets(lag: Histogram) -> dict[str, int]:
    """For the JSON line and for people: measurements by bucket, empty ones left out."""
    return {_told(bound): count for bound, count in lag.counts.items() if count}


def shown(lag: Histogram) -> str:
    """One line for each bucket with a bar of its share."""
    rows = buckets(lag)
    return "\n".join(f"  {bound:>10} {count:8,} {'#' * round(60 * count / lag.total)}" for bound, count in rows.items())


def _told(bound_s: float) -> str:
    return "longer" if math.isinf(bound_s) else f"<= {1000 * bound_s:g} ms"
