"""Matrices that a published checkpoint keeps in fp8, and where their scales lie. Knows no model, loads nothing.

Two layouts are read: that of compressed-tensors, with one scale for a matrix, for each output or for each block, and
that of DeepSeek, with one for each block. A matrix ``NAME.weight`` (e4m3) has its scales in ``NAME.weight_scale`` or
``NAME.weight_scale_inv``; the numbers that it stands for are its own times the scales.
"""

from collections.abc import Mapping
from typing import Any

from axon.errors import UnknownModel

FP8_NAME = "F8_E4M3"
"""The dtype's name in a file."""
SCALE_SUFFIXES = ("_scale", "_scale_inv")
BLOCK = 128
"""Outputs and inputs of a block."""


def check_fp8(quantisation: Mapping[str, Any]) -> None:
    """Raises ``Misconfigured`` unless this ``quantization_config`` of a config.json is one of the layouts."""
    method = quantisation.get("quant_method")
    if method == "compressed-tensors":
        problem = _compressed_problem(quantisation)
    elif method == "fp8":
        problem = _deepseek_problem(quantisation)
    else:
        problem = f"{method!r} is not read" if method else "it names no quant_method, as MLX does not"
    if problem:
        raise UnknownModel(
            f"a folder quantised so is not supported: {problem}. Give the model in bfloat16, in fp8 (e4m3, "
            f"compressed-tensors or blocks of {BLOCK} x {BLOCK}), in four bits (AWQ or GPTQ), or as a GGUF file"
        )


def scales_shape_problem(shape: tuple[int, ...], scales: tuple[int, ...]) -> str:
    """What is wrong with scales of this shape for a matrix of that shape; empty if nothing is."""
    blocks = tuple(-(-size // BLOCK) for size in shape)
    if scales in ((), (1,), (1, 1), (shape[0],), (shape[0], 1), blocks):
        return ""
    return (
        f"scales of shape {list(scales)} fit neither the matrix, nor its outputs, nor its blocks of {BLOCK} x {BLOCK}"
    )


def _compressed_problem(quantisation: Mapping[str, Any]) -> str:
    groups = quantisation.get("config_groups") or {}
    if not groups:
        return "it names no config_groups"
    for group in groups.values():
        weights = group.get("weights") or {}
        if weights.get("type") != "float" or weights.get("num_bits") != 8:
            return f"its weights are {weights.get('type')} of {weights.get('num_bits')} bits"
        if weights.get("strategy") not in ("tensor", "channel", "block"):
            return f"its weights have scales by {weights.get('strategy')!r}"
        if weights.get("strategy") == "block" and weights.get("block_structure") not in (None, [BLOCK, BLOCK]):
            return f"its blocks are {weights['block_structure']}"
    return ""


def _deepseek_problem(quantisation: Mapping[str, Any]) -> str:
    if quantisation.get("fmt", "e4m3") != "e4m3":
        return f"its numbers are {quantisation['fmt']}"
    if quantisation.get("weight_block_size") not in (None, [BLOCK, BLOCK]):
        return f"its blocks are {quantisation['weight_block_size']}"
    return ""
