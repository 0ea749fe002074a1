"""Matrices of a published checkpoint in fp8, with their scales; see ``fp8_layout``."""

import torch

from axon.engine.load.quantised.fp8_layout import BLOCK


def row_scales(shape: tuple[int, ...], scales: torch.Tensor) -> torch.Tensor | None:
    """A scale for each output, in float32; None if an output has several."""
    if scales.numel() == 1:
        return scales.float().reshape(1).expand(shape[0]).contiguous()
    if tuple(scales.shape) in ((shape[0],), (shape[0], 1)):
        return scales.float().reshape(-1)
    return None


def widened(matrix: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """The numbers that a matrix in fp8 stands for, in float32."""
    wide = matrix.float()
    by_row = row_scales(tuple(matrix.shape), scales)
    if by_row is not None:
        return wide * by_row[:, None]
    outputs, inputs = matrix.shape
    return wide * scales.float().repeat_interleave(BLOCK, 0)[:outputs].repeat_interleave(BLOCK, 1)[:, :inputs]
