"""Compiles and launches Triton kernels. Holds no kernel.

With programmatic dependent launch (PDL) a kernel starts while the one before it ends: before it waits, it may read only
what no kernel of the same step writes, such as weights and the KV of earlier steps.
"""

from collections.abc import Callable
from typing import Any

import torch
import triton


def kernel(function: Callable[..., Any]) -> Any:
    """Compiles a function with Triton on its first launch, once for each set of constants."""
    return triton.jit(function)


def overlaps(device: torch.device) -> bool:
    """Whether the device has programmatic dependent launch."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= (9, 0)


def launch(*, num_warps: int, pdl: bool = False) -> dict[str, Any]:
    """The keyword arguments of a launch."""
    return {"num_warps": num_warps, "launch_pdl": True} if pdl else {"num_warps": num_warps}


def ceil_pow2(number: int) -> int:
    """The smallest power of two that is at least ``number``."""
    return 1 << max(0, number - 1).bit_length()
