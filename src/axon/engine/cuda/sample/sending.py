"""Sends numbers to the device while the host goes on. Knows no draw."""

from typing import Any

import numpy.typing as npt
import torch


def send(numbers: npt.NDArray[Any], device: torch.device) -> torch.Tensor:
    """An array as a tensor on the device, by pinned memory."""
    here = torch.from_numpy(numbers)
    return (here.pin_memory() if device.type == "cuda" else here).to(device, non_blocking=True)


def send_list(numbers: list[int] | list[float], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """A list as a tensor of this type on the device, by pinned memory."""
    return torch.tensor(numbers, dtype=dtype, pin_memory=device.type == "cuda").to(device, non_blocking=True)
