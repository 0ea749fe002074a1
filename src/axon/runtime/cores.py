"""The processor cores that this process may use: its affinity mask, and the quota of its container."""

import math
import os
from contextlib import suppress
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""The processor time that a container may use (cgroup v2)."""


def usable_cores() -> int:
    """The number of cores that the scheduler may run this process on, at most the quota of its container."""
    num_cores = len(os.sched_getaffinity(0))
    with suppress(OSError):
        return min(num_cores, quota_cores(_QUOTA.read_text()) or num_cores)
    return num_cores


def quota_cores(text: str) -> int | None:
    """The cores in a ``cpu.max`` of ``200000 100000``, microseconds of each period; None for ``max``, no quota."""
    quota, _, period = text.strip().partition(" ")
    return math.ceil(int(quota) / int(period)) if quota.isdecimal() and period.isdecimal() else None
