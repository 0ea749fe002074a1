"""Matrices of a published checkpoint in MXFP4, unpacked; see ``mxfp4_layout``."""

import torch

_VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""The numbers that three bits stand for; the fourth is the sign."""
_BIAS = 127
"""Offset of a stored exponent."""


def unpacked_mxfp4(blocks: torch.Tensor, exponents: torch.Tensor) -> torch.Tensor:
    """The numbers [output, input] of one expert's blocks [output, block, 16] and exponents [output, block], in float32
    on their device."""
    sixteen = torch.tensor([*_VALUES, *(-value for value in _VALUES)], device=blocks.device)
    pairs = torch.stack([sixteen.repeat(16), sixteen.repeat_interleave(16)], dim=-1)  # by byte: the lower half first
    scales = torch.ldexp(torch.ones_like(exponents, dtype=torch.float32), exponents.int() - _BIAS)
    numbers = pairs[blocks.int().flatten()].view(*exponents.shape, -1)
    return numbers.mul_(scales[..., None]).flatten(1)
