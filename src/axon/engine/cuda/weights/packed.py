"""Matrices in four bits as a GPU keeps them: one layout, whichever way a checkpoint packs its own. Needs no GPU.

An int16 has four numbers of an output: in its lowest bits an input of the first quarter, above them the inputs that lie
a quarter, two and three quarters of a row further on. A tile of int16s is therefore four tiles of numbers, each of
which meets neighbouring inputs; and two int16s next to each other become pairs of bfloat16s by a mask, without any
number moving. Inputs whose groups are mixed are sorted by group first; ``order`` says how, and rows are put into that
order before they are multiplied.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from axon.engine.load.quantised.four_bit_layout import FourBits
from axon.engine.load.quantised.four_bit_matrices import Grouped, grouped

SMALLEST_GROUP = 16
"""Inputs of the smallest group that the kernels take."""
QUARTERS = 4
_MULTIPLE = 16
_LIFT = 128
"""What the kernels add to a number and its zero point: 128 to 143 are next to each other in bfloat16."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A weight matrix [output, input] in four bits; a number stands for (number - zero point) * scale."""

    numbers: torch.Tensor
    """Four numbers in each int16 [output, input / 4]."""
    steps: torch.Tensor
    """int32s [group, output]: the scale in the lower half, 128 + the zero point as a bfloat16 in the upper."""
    group_size: int
    scale_dtype: torch.dtype
    """The type of the scales: float16 or bfloat16."""
    order: torch.Tensor | None = None
    """The input that each column holds; None where they are in order."""

    @property
    def shape(self) -> tuple[int, int]:
        """Outputs and inputs."""
        return self.numbers.shape[0], QUARTERS * self.numbers.shape[1]

    def ordered(self, rows: torch.Tensor) -> torch.Tensor:
        """Rows of activations with their columns as this matrix has them."""
        return rows if self.order is None else rows.index_select(1, self.order)


def pack(layout: FourBits, matrices: Sequence[Mapping[str, torch.Tensor]]) -> Packed | None:
    """Matrices, each given by its parts, stacked along their outputs; None if the kernels do not take them."""
    found = [grouped(layout, parts) for parts in matrices]
    num_inputs = len(found[0].groups)
    size = layout.group_size or num_inputs
    small = math.gcd(size, num_inputs // QUARTERS)
    num_outputs = sum(each.numbers.shape[1] for each in found)
    if (
        num_inputs % size
        or num_inputs % QUARTERS
        or small % SMALLEST_GROUP
        or num_outputs % _MULTIPLE
        or not _share_groups(found, size)
    ):
        return None
    order = torch.sort(found[0].groups, stable=True).indices
    is_in_order = bool((order[1:] > order[:-1]).all())
    first, *others = torch.cat([each.numbers[order].to(torch.int16) for each in found], 1).T.chunk(QUARTERS, 1)
    scales, zeros = torch.cat([each.scales for each in found], 1), torch.cat([each.zeros for each in found], 1)
    dtype = _scale_dtype(scales)
    steps = _steps(scales.to(dtype), zeros).repeat_interleave(size // small, 0)
    return Packed(
        numbers=sum((each << 4 * place for place, each in enumerate(others, 1)), first).contiguous(),
        steps=steps.contiguous(),
        group_size=small,
        scale_dtype=dtype,
        order=None if is_in_order else order,
    )


def widen(matrix: Packed) -> torch.Tensor:
    """The numbers [output, input] that a matrix stands for, in float32: the reference for the kernels."""
    numbers = torch.cat([matrix.numbers >> 4 * place & 15 for place in range(QUARTERS)], 1).float()
    scales = (matrix.steps & 0xFFFF).to(torch.int16).view(matrix.scale_dtype).float()
    lifted = (matrix.steps >> 16).to(torch.int16).view(torch.bfloat16).float()
    scales, zeros = (each.T.repeat_interleave(matrix.group_size, 1) for each in (scales, lifted - _LIFT))
    wide = (numbers - zeros) * scales
    if matrix.order is None:
        return wide
    return torch.empty_like(wide).index_copy_(1, matrix.order, wide)


def _share_groups(found: Sequence[Grouped], size: int) -> bool:
    """Whether each group has so many inputs, and the matrices have the same ones."""
    first = found[0].groups
    counts = torch.bincount(first, minlength=len(found[0].scales))
    return bool((counts == size).all()) and all(torch.equal(each.groups, first) for each in found[1:])


def _scale_dtype(scales: torch.Tensor) -> torch.dtype:
    """float16, unless the scales are too large or too small for it and bfloat16 has them."""
    return torch.float16 if torch.equal(scales.half().to(scales.dtype), scales) else torch.bfloat16


def _steps(scales: torch.Tensor, zeros: torch.Tensor) -> torch.Tensor:
    lower = scales.view(torch.int16).int() & 0xFFFF
    upper = (zeros + _LIFT).to(torch.bfloat16).view(torch.int16).int()
    return upper << 16 | lower
