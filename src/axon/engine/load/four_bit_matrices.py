"""Matrices of a published checkpoint in four bits, unpacked; see ``four_bit_layout``. Every function is pure."""

from collections.abc import Mapping

import torch

from axon.engine.load.four_bit_layout import NUMBERS, FourBits

_SHIFTS = torch.arange(0, 4 * NUMBERS, 4, dtype=torch.int32)
_AWQ_ORDER = torch.tensor([0, 4, 1, 5, 2, 6, 3, 7])
"""Where in an int32 of AWQ each of eight outputs lies: the four even ones come first."""


def unpacked(layout: FourBits, parts: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """The numbers [output, input] that the parts of a matrix stand for, in float32."""
    zeros = along_outputs(parts["qzeros"])
    if layout.method == "awq":
        zeros, numbers = zeros[..., _AWQ_ORDER], along_outputs(parts["qweight"])[..., _AWQ_ORDER].flatten(1)
    else:
        numbers = along_inputs(parts["qweight"])
    groups = parts["g_idx"].long() if "g_idx" in parts else _groups(layout, len(numbers))
    scales, zeros = parts["scales"].float(), zeros.flatten(1) + layout.zero_offset
    return ((numbers - zeros[groups]).float() * scales[groups]).T.contiguous()


def along_outputs(packed: torch.Tensor) -> torch.Tensor:
    """Numbers [row, int32, 8] of int32s [row, int32], from the lowest bits up."""
    return (packed[:, :, None] >> _SHIFTS) & 15


def along_inputs(packed: torch.Tensor) -> torch.Tensor:
    """Numbers [8 x row, output] of int32s [row, output], from the lowest bits up."""
    return ((packed[:, None, :] >> _SHIFTS[:, None]) & 15).flatten(0, 1)


def _groups(layout: FourBits, num_inputs: int) -> torch.Tensor:
    return torch.arange(num_inputs) // (layout.group_size or num_inputs)
