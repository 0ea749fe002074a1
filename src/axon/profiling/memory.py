"""Memory by allocation: which lines of Python allocated what is still held. Built on tracemalloc.

Every allocation of Python is then noted, which slows the process down while it lasts. Memory of native libraries, such
as a model's weights, is not seen.
"""

import os
import threading
import time
import tracemalloc
from pathlib import Path

from axon.profiling.places import short_path
from axon.profiling.profile import Allocated, MemoryProfile

TOP = 100
MAX_TRACE_BYTES = 48 << 20
"""Memory that tracemalloc itself may take before the profile ends early: reading more would hold the process up."""
_LOOK_S = 0.05


def record_memory(seconds: float, stop: threading.Event, *, top: int = TOP) -> MemoryProfile:
    """Watches the process's allocations for ``seconds``, or until ``stop`` is set. Tracing is off again afterwards."""
    was_tracing = tracemalloc.is_tracing()
    began = time.monotonic()
    if not was_tracing:
        tracemalloc.start(1)
    try:
        is_cut = False
        while (left_s := began + seconds - time.monotonic()) > 0 and not stop.wait(min(_LOOK_S, left_s)):
            if tracemalloc.get_tracemalloc_memory() > MAX_TRACE_BYTES:
                is_cut = True
                break
        held_bytes, peak_bytes = tracemalloc.get_traced_memory()
        snapshot = tracemalloc.take_snapshot()
    finally:
        if not was_tracing:
            tracemalloc.stop()
    mine = tracemalloc.Filter(inclusive=False, filename_pattern=tracemalloc.__file__)
    lines = snapshot.filter_traces([mine]).statistics("lineno")[:top]
    return MemoryProfile(
        seconds=time.monotonic() - began,
        lines=[Allocated(_place(each), each.size, each.count) for each in lines],
        held_bytes=held_bytes,
        peak_bytes=peak_bytes,
        resident_bytes=resident_bytes(),
        is_cut=is_cut,
    )


def _place(line: tracemalloc.Statistic) -> str:
    frame = line.traceback[0]
    return f"{short_path(frame.filename)}:{frame.lineno}"


def resident_bytes() -> int:
    """The process's resident memory; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
