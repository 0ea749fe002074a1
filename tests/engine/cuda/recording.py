"""A graph is recorded whole although garbage with another graph in it is made meanwhile. Needs a GPU."""

import gc
from typing import Any

import torch

from axon.engine.cuda.step.recording import record


@torch.inference_mode()
def record_beside_garbage() -> None:
    """Asserts that the recorded graph computes, and that garbage is collected afterwards as before."""
    number = torch.zeros(8, device="cuda")
    stream: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    before, _ = record(lambda: number.add_(1), stream=stream, pool=None)
    old = [before]
    del before

    def compute() -> torch.Tensor:
        if torch.cuda.is_current_stream_capturing():
            cycle: list[Any] = [old.pop()]
            cycle.append(cycle)
            del cycle
            _ = [[] for _ in range(100_000)]  # more than enough for the collector to run
        return number.add_(1)

    graph, _ = record(compute, stream=stream, pool=None)
    assert gc.isenabled()
    number.zero_()
    graph.replay()
    assert number.tolist() == [1.0] * 8
    gc.collect()
