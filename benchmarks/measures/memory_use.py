"""Memory of a server over time: samples, bytes for each thing that it holds, whether it stays flat. Knows no load."""

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measures.figures import Figures

MOST_DRIFT = 1.05
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Sample:
    """One look."""

    at_s: float
    """Seconds since the first one."""
    rss_bytes: int
    """Resident memory of the server's process."""


def rss_bytes(pid: int) -> int:
    """Resident memory of one process now."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES


def tcp_bytes() -> int:
    """Memory of all TCP sockets of this machine: what nobody reads waits there, outside every process."""
    for line in Path("/proc/net/sockstat").read_text().splitlines():
        words = line.split()
        if words[0] == "TCP:":
            return int(words[words.index("mem") + 1]) * _PAGE_BYTES
    return 0


def watch(
    pid: int, seconds: float, num_samples: int, meanwhile: Callable[[float], None], clock: Callable[[], float]
) -> list[Sample]:
    """Looks ``num_samples`` times over ``seconds``, the first time at once; ``meanwhile`` is called with the seconds
    until the next look."""
    started = clock()
    samples = [Sample(0.0, rss_bytes(pid))]
    for number in range(1, num_samples):
        while (left_s := started + seconds * number / (num_samples - 1) - clock()) > 0:
            meanwhile(left_s)
        samples.append(Sample(clock() - started, rss_bytes(pid)))
    return samples


def drift(samples: Sequence[Sample], settle_share: float = 0.0) -> float:
    """The last third's median over the first third's, once ``settle_share`` of the time is left out."""
    kept = [each.rss_bytes for each in samples if each.at_s >= settle_share * samples[-1].at_s]
    third = max(1, len(kept) // 3)
    return statistics.median(kept[-third:]) / statistics.median(kept[:third])


def held_figures(num_held: int, before_bytes: int, samples: Sequence[Sample], settle_share: float) -> Figures:
    """What ``num_held`` things cost: bytes each by the median of the last third, and the drift."""
    third = max(1, len(samples) // 3)
    last_bytes = statistics.median(each.rss_bytes for each in samples[-third:])
    return {
        "num": float(num_held),
        "rss_bytes_each": (last_bytes - before_bytes) / num_held,
        "rss_mb_before": before_bytes / 1e6,
        "rss_mb_last": last_bytes / 1e6,
        "drift": drift(samples, settle_share),
        "seconds": samples[-1].at_s,
    }


def monotonic() -> float:
    """The clock of ``watch``."""
    return time.monotonic()
