"""How long kernels take on a GPU, by its own clock and without the host's part. Knows no kernel."""

from collections.abc import Callable
from statistics import median

import torch

_RUNS, _WARM_UPS = 9, 2


def time_us(compute: Callable[[], None], count: int = 1) -> float:
    """Median microseconds of one of the ``count`` products of a recorded run."""
    compute()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        compute()
    times = []
    for _ in range(_RUNS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / count)
    return float(median(times[_WARM_UPS:]))
