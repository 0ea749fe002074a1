"""The age of this process, measured by the kernel from its start: imports and arguments included."""

import os
import time
from pathlib import Path

_LOADED = time.monotonic()
_START_FIELD = 19
"""Index of the start time, in clock ticks since boot, among the fields of /proc/self/stat that follow the name."""


def process_age_s() -> float:
    """Seconds since the process was started; where the kernel does not tell, since this module was loaded."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        started_s = int(fields[_START_FIELD]) / os.sysconf("SC_CLK_TCK")
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started_s)
    except (OSError, ValueError, IndexError, AttributeError):
        return time.monotonic() - _LOADED
