"""Matrices that gpt-oss keeps in MXFP4: where they lie. Knows no model, loads nothing.

A tensor ``NAME`` [expert, input, output] of all experts of a layer is two: ``NAME_blocks`` [expert, output, input / 32,
16] with two numbers of four bits (e2m1) in each byte, the lower half first, and ``NAME_scales`` [expert, output,
input / 32], each byte the exponent of a power of two (e8m0, less 127) that the 32 numbers of a block are multiplied by.
"""

BLOCK = 32
"""Inputs of an output that share a scale."""


def blocks_of(name: str) -> str:
    """The name of the tensor with the numbers."""
    return f"{name}_blocks"


def exponents_of(name: str) -> str:
    """The name of the tensor with the scales' exponents."""
    return f"{name}_scales"


def part_shapes(name: str, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """The shapes of both tensors of ``name`` [expert, input, output]."""
    experts, inputs, outputs = shape
    blocks = (experts, outputs, inputs // BLOCK)
    return {blocks_of(name): (*blocks, BLOCK // 2), exponents_of(name): blocks}
