"""Matrices of a published checkpoint in four bits, unpacked; see ``four_bit_layout``. Every function is pure."""

from collections.abc import Mapping
from typing import NamedTuple

import torch

from axon.engine.load.quantised.four_bit_layout import NUMBERS, FourBits

_AWQ_ORDER = (0, 4, 1, 5, 2, 6, 3, 7)
"""Where in an int32 of AWQ each of eight outputs lies: the four even ones come first."""


FourBitParts = tuple[FourBits, list[dict[str, torch.Tensor]]]
"""Matrices by their parts, and how they are packed."""


class Grouped(NamedTuple):
    """The numbers of a matrix, and what makes others of them: (number - zero) * scale, by the group of the input."""

    numbers: torch.Tensor
    """From 0 to 15 [input, output]."""
    zeros: torch.Tensor
    """Zero points [group, output]."""
    scales: torch.Tensor
    """Scales [group, output], as the files have them."""
    groups: torch.Tensor
    """The group of each input."""


def grouped(layout: FourBits, parts: Mapping[str, torch.Tensor]) -> Grouped:
    """What the parts of a matrix hold, on the device where they are."""
    zeros = along_outputs(parts["qzeros"])
    if layout.method == "awq":
        order = torch.tensor(_AWQ_ORDER, device=zeros.device)
        zeros, numbers = zeros[..., order], along_outputs(parts["qweight"])[..., order].flatten(1)
    else:
        numbers = along_inputs(parts["qweight"])
    groups = parts["g_idx"].long() if "g_idx" in parts else _groups(layout, numbers)
    return Grouped(numbers, zeros.flatten(1) + layout.zero_offset, parts["scales"], groups)


def unpacked(layout: FourBits, parts: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """The numbers [output, input] that the parts of a matrix stand for, in float32."""
    numbers, zeros, scales, groups = grouped(layout, parts)
    return ((numbers - zeros[groups]).float() * scales.float()[groups]).T.contiguous()


def along_outputs(packed: torch.Tensor) -> torch.Tensor:
    """Numbers [row, int32, 8] of int32s [row, int32], from the lowest bits up."""
    return (packed[:, :, None] >> _shifts(packed)) & 15


def along_inputs(packed: torch.Tensor) -> torch.Tensor:
    """Numbers [8 x row, output] of int32s [row, output], from the lowest bits up."""
    return ((packed[:, None, :] >> _shifts(packed)[:, None]) & 15).flatten(0, 1)


def _shifts(packed: torch.Tensor) -> torch.Tensor:
    return torch.arange(0, 4 * NUMBERS, 4, dtype=torch.int32, device=packed.device)


def _groups(layout: FourBits, numbers: torch.Tensor) -> torch.Tensor:
    num_inputs = len(numbers)
    return torch.arange(num_inputs, device=numbers.device) // (layout.group_size or num_inputs)
