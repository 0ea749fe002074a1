"""Decides how many processes serve a port, by the cores that this process may use."""

import math
import os
from contextlib import suppress
from pathlib import Path

from axon.gateway.config import GatewayConfig

_CORES_EACH = 4
"""Cores for each process, where the number is not set: most of a machine is the engine's."""
_MAX_PROCESSES = 4
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""The processor time that a container may use (cgroup v2)."""


def num_processes(config: GatewayConfig, num_cores: int) -> int:
    """The number that is set, else 1 below 8 cores and a quarter of them above. Pure."""
    if config.processes:
        return config.processes
    return 1 if num_cores < 2 * _CORES_EACH else min(_MAX_PROCESSES, num_cores // _CORES_EACH)


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
