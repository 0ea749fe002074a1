"""Copies a step's arrays from the host to the device, all in one transfer. Knows no step."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from axon.engine.cuda.step.step_arrays import layout

_TORCH: Mapping[Any, torch.dtype] = {
    np.dtype(np.int32): torch.int32,
    np.dtype(np.float32): torch.float32,
    np.dtype(np.float64): torch.float64,
}


def send(
    arrays: Mapping[str, np.ndarray[Any, Any]], device: torch.device, there: torch.Tensor | None = None
) -> dict[str, torch.Tensor]:
    """The arrays on the device, in a buffer of 32-bit words: ``there`` if that is given, else a new one."""
    starts, num_words = layout(arrays)
    staged = torch.empty(num_words, dtype=torch.int32, pin_memory=device.type == "cuda")
    words = staged.numpy()
    for name, array in arrays.items():
        flat = np.ascontiguousarray(array).reshape(-1).view(np.int32)
        words[starts[name] : starts[name] + len(flat)] = flat
    if there is None:
        there = staged.to(device, non_blocking=True)
    else:
        there.copy_(staged, non_blocking=True)
    return {
        name: there[starts[name] : starts[name] + array.nbytes // 4].view(_TORCH[array.dtype]).view(array.shape)
        for name, array in arrays.items()
    }
