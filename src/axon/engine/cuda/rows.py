"""What products read and write: weights and rows in bfloat16, float32 or fp8, and results as partial sums.

In fp8 (e4m3, largest number 448) a weight matrix has a scale for each output, and a row of activations one of its own,
so that no row depends on those beside it. A product leaves both scales out, and the kernel that reads it multiplies by
them. The functions here are plain PyTorch: they make the weights, and are the reference for the kernels.
"""

from dataclasses import dataclass

import torch

FP8 = torch.float8_e4m3fn
LARGEST = 448.0
SMALLEST = 1e-20
"""Rows whose numbers are all smaller count as zeros: their scale must not be 0."""


@dataclass(frozen=True, slots=True)
class ExpertBiases:
    """The biases of a mixture of experts, those of all experts one behind the other."""

    router: torch.Tensor
    gate_up: torch.Tensor
    down: torch.Tensor


@dataclass(frozen=True, slots=True)
class Rows:
    """Numbers [row, column]: activations, or a weight matrix with its outputs as rows. With scales, they are fp8."""

    values: torch.Tensor
    scales: torch.Tensor | None = None
    """What each row is to be multiplied with [row], in float32."""
    largest: torch.Tensor | None = None
    """Numbers [row, part] whose largest is the largest of the row: the product then rounds the rows to fp8."""

    def __len__(self) -> int:
        return len(self.values)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.values.shape[0], self.values.shape[1]

    def first(self, count: int) -> "Rows":
        """The first rows, in the same memory."""
        return Rows(self.values[:count], None if self.scales is None else self.scales[:count])


@dataclass(frozen=True, slots=True)
class Parts:
    """A matrix product as partial sums, which the kernel that reads it adds up, and then multiplies by the scales."""

    tensor: torch.Tensor
    count: int = 1
    stride: int = 0
    """Elements from one partial sum to the next."""
    row_scales: torch.Tensor | None = None
    output_scales: torch.Tensor | None = None

    @property
    def is_scaled(self) -> bool:
        """Whether the scales of rows and outputs are still to be multiplied with."""
        return self.row_scales is not None

    @property
    def scales(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Scales of rows and of outputs; where there are none, any tensor stands in, which no kernel reads."""
        if self.row_scales is None or self.output_scales is None:
            return self.tensor, self.tensor
        return self.row_scales, self.output_scales

    def whole(self) -> torch.Tensor:
        """The product [row, output] in float32: what kernels make of it."""
        parts = self.tensor.view(self.count, -1, self.tensor.shape[-1]).float().sum(0)
        if self.row_scales is None or self.output_scales is None:
            return parts
        return parts * self.row_scales[: len(parts), None] * self.output_scales


def empty_rows(count: int, size: int, dtype: torch.dtype, device: torch.device) -> Rows:
    """Memory for rows; in fp8 for their scales too."""
    values = torch.empty(count, size, dtype=dtype, device=device)
    return Rows(values, torch.empty(count, dtype=torch.float32, device=device) if dtype == FP8 else None)


def quantise(rows: torch.Tensor) -> Rows:
    """Rows in fp8, each with the scale that makes its largest number 448."""
    wide = rows.float()
    largest = wide.abs().amax(-1).clamp_min(SMALLEST)
    return Rows(round_to_fp8(wide * (LARGEST / largest)[:, None]), largest / LARGEST)


def round_to_fp8(numbers: torch.Tensor) -> torch.Tensor:
    """The nearest numbers in fp8; what is larger than the largest becomes the largest."""
    return numbers.clamp(-LARGEST, LARGEST).to(FP8)


def widen(rows: Rows) -> torch.Tensor:
    """The numbers that the rows stand for, in float32."""
    wide = rows.values.float()
    return wide if rows.scales is None else wide * rows.scales[:, None]
