"""Records what is launched as a CUDA graph. Knows no step."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class ChunkGraph:
    """A recorded step with prompt chunks, and its input buffers."""

    words: torch.Tensor
    inputs: dict[str, torch.Tensor]
    graph: Any
    logits: torch.Tensor


def record(compute: Callable[[], torch.Tensor], *, stream: Any, pool: Any) -> tuple[Any, torch.Tensor]:
    """The graph of what ``compute`` launches, and the tensor that it returns.

    It is run once on ``stream`` before, behind what the current stream has to do. ``pool`` is the memory of graphs
    recorded before, which this one shares; None for the first.
    """
    here = torch.cuda.current_stream()
    stream.wait_stream(here)
    with torch.cuda.stream(stream):
        compute()
    here.wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with _garbage_kept(), torch.cuda.graph(graph, pool=pool):
        result = compute()
    return graph, result


@contextmanager
def _garbage_kept() -> Iterator[None]:
    """Collects no garbage meanwhile: the end of another graph would make the one that is being recorded invalid."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
