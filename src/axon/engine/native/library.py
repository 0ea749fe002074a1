"""The kernels' C interface as Python sees it. Knows no model folder and no batch."""

import ctypes
import struct
from ctypes import POINTER, c_char_p, c_float, c_int, c_int32, c_uint64, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import numpy.typing as npt

from axon.engine.native.build import GROUP_SIZE, NotBuilt, library, source_digest

BLOCK_SIZE = 16
"""Tokens of a KV block; the kernels' layout knows no other."""
LANES = 16
"""Outputs of a panel of weights."""
INSTRUCTION_SETS = ("amx-int8", "avx512-vnni", "avx2", "neon-i8mm", "neon-dotprod", "scalar")
"""All that the kernels are written for, the better ones of a kind of machine first; all compute the same bits."""
MAX_HEAD_DIM = 512
ACTIVATIONS = ("silu", "gelu_pytorch_tanh")
"""The activations of gates by their numbers in model.h."""
MAX_EXPERTS = 1024
MAX_SHARE = 16
"""Most query heads that share a KV head."""
REQUEST = struct.Struct("=6d4Q10i")
"""A row's sampling parameters, as sampler.h has them."""


class Shape(ctypes.Structure):
    """The model's sizes, as model.h has them."""

    _fields_ = (
        ("vocab", c_int32),
        ("hidden", c_int32),
        ("intermediate", c_int32),
        ("layers", c_int32),
        ("heads", c_int32),
        ("kv_heads", c_int32),
        ("head_dim", c_int32),
        ("norm_epsilon", c_float),
        ("query_scale", c_float),
        ("embedding_scale", c_float),
        ("rotary", c_int32),
        ("activation", c_int32),
        ("experts", c_int32),
        ("experts_per_token", c_int32),
        ("expert_intermediate", c_int32),
        ("normalises_experts", c_int32),
        ("gate_limit", c_float),
        ("gate_slope", c_float),
        ("head_bytes", c_int32),
    )


class EncoderShape(ctypes.Structure):
    """An encoder's sizes and choices, as encoder.h has them."""

    _fields_ = (
        ("hidden", c_int32),
        ("intermediate", c_int32),
        ("layers", c_int32),
        ("heads", c_int32),
        ("activation", c_int32),
        ("pooling", c_int32),
        ("normalises", c_int32),
        ("norm_epsilon", c_float),
    )


_INTS, _FLOATS = c_void_p, c_void_p  # addresses of numpy arrays, whose dtypes and shapes the caller checks
_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "axon_instruction_set": (c_char_p, [c_char_p]),
    "axon_group_size": (c_int, []),
    "axon_create": (c_void_p, [POINTER(Shape), c_int, c_int, c_char_p]),
    "axon_create_head": (c_void_p, [POINTER(Shape), c_void_p, _INTS, c_char_p]),
    "axon_destroy": (None, [c_void_p]),
    "axon_block_bytes": (c_uint64, [c_void_p]),
    "axon_blocks": (c_void_p, [c_void_p]),
    "axon_set_linear": (None, [c_void_p, c_int, c_int, c_void_p, c_void_p, c_int, c_int]),
    "axon_set_bias": (None, [c_void_p, c_int, c_int, _FLOATS]),
    "axon_set_vector": (None, [c_void_p, c_int, c_int, _FLOATS]),
    "axon_set_window": (None, [c_void_p, c_int, c_int]),
    "axon_team": (c_void_p, [c_void_p]),
    "axon_create_team": (c_void_p, [c_int]),
    "axon_destroy_team": (None, [c_void_p]),
    "axon_create_sampler": (c_void_p, [c_void_p, c_int, c_char_p]),
    "axon_destroy_sampler": (None, [c_void_p]),
    "axon_request_bytes": (c_int, []),
    "axon_sample": (
        c_int,
        [c_void_p, _FLOATS, c_void_p, c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_int],
    ),
    "axon_create_encoder": (c_void_p, [POINTER(EncoderShape), c_int, c_char_p]),
    "axon_destroy_encoder": (None, [c_void_p]),
    "axon_set_encoder_linear": (None, [c_void_p, c_int, c_int, c_void_p, c_void_p, _FLOATS, c_int, c_int]),
    "axon_set_encoder_vector": (None, [c_void_p, c_int, c_int, _FLOATS]),
    "axon_encode": (c_int, [c_void_p, _INTS, _INTS, _INTS, c_int, _INTS, c_int, c_int, c_int, _FLOATS]),
    "axon_step": (
        c_int,
        [c_void_p, _INTS, _INTS, c_int, _INTS, c_int, _INTS, _INTS, _INTS, c_int, _FLOATS, _INTS, c_void_p],
    ),
    "axon_draft": (
        c_int,
        [
            *(c_void_p, _INTS, _INTS, c_int, _INTS, c_int, _INTS, _INTS),
            *(_INTS, _FLOATS, _FLOATS, _FLOATS, _INTS, c_int, _INTS, _INTS, _INTS, c_void_p),
        ],
    ),
    "axon_create_adapter": (c_void_p, [c_void_p]),
    "axon_destroy_adapter": (None, [c_void_p]),
    "axon_set_low_rank": (None, [c_void_p, c_int, c_int, _FLOATS, _FLOATS, c_void_p, c_int, c_int]),
}


@cache
def load(folder: Path | None = None) -> ctypes.CDLL:
    """Opens the library, which is built if it is missing; raises NotBuilt."""
    path = library(folder)
    try:
        opened = ctypes.CDLL(str(path))
    except OSError as error:
        raise NotBuilt(f"{path} cannot be opened: {error}") from error
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(opened, name)
        function.restype, function.argtypes = result, arguments
    assert opened.axon_group_size() == GROUP_SIZE
    assert opened.axon_request_bytes() == REQUEST.size
    return opened


def instruction_set(opened: ctypes.CDLL, name: str = "") -> str | None:
    """The instruction set of this name, or the best one for an empty name; None if the machine lacks it."""
    found: bytes | None = opened.axon_instruction_set(name.encode())
    return found.decode() if found is not None else None


def kernel_id(folder: Path | None = None) -> str:
    """Identifies the arithmetic to the bit, e.g. ``int8-g64-neon-dotprod-1a2b3c4d5e6f``; raises NotBuilt."""
    return f"int8-g{GROUP_SIZE}-{instruction_set(load(folder))}-{source_digest()}"


def encoder_kernel_id(dtype: str, folder: Path | None = None) -> str:
    """Identifies an encoder's arithmetic to the bit; raises NotBuilt."""
    return f"encoder-{dtype}-{instruction_set(load(folder))}-{source_digest()}"


def address(array: npt.NDArray[Any] | None) -> int | None:
    """The address of a contiguous array, which the caller keeps alive."""
    if array is None:
        return None
    assert array.flags.c_contiguous
    return array.ctypes.data
