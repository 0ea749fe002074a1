"""Writes a GGUF file's tensors as one safetensors file, a tensor at a time. Knows names and formats, no model.

Quantised tensors become float32, which holds every value exactly; float16 and bfloat16 stay as they are.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from gguf import GGMLQuantizationType
from gguf.quants import dequantize

from axon.engine.load.convert.config import ROPE_FACTORS
from axon.engine.load.convert.source import Source
from axon.errors import Misconfigured

Array = npt.NDArray[Any]

_TOP_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_LAYER_NAMES = {
    "attn_norm.weight": "input_layernorm.weight",
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_k.weight": "self_attn.k_proj.weight",
    "attn_v.weight": "self_attn.v_proj.weight",
    "attn_output.weight": "self_attn.o_proj.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight",
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
}
_OWN_NAMES = {
    "qwen2": {f"attn_{name}.bias": f"self_attn.{name}_proj.bias" for name in "qkv"},
    "qwen3": {f"attn_{name}_norm.weight": f"self_attn.{name}_norm.weight" for name in "qk"},
}
_DTYPES = {GGMLQuantizationType.F16: "F16", GGMLQuantizationType.BF16: "BF16"}


@dataclass(frozen=True, slots=True)
class _Piece:
    """A tensor to be written."""

    name: str
    tensor: Any
    num_heads: int
    """Heads whose rows must be unpermuted; 0 if the rows are in order."""

    @property
    def dtype(self) -> str:
        return _DTYPES.get(self.tensor.tensor_type, "F32")

    @property
    def shape(self) -> list[int]:
        return [int(size) for size in reversed(self.tensor.shape)]

    @property
    def num_bytes(self) -> int:
        return int(np.prod(self.shape)) * (4 if self.dtype == "F32" else 2)

    def values(self) -> Array:
        values = unpack(self.tensor).reshape(self.shape)
        return np.ascontiguousarray(unpermute(values, self.num_heads) if self.num_heads else values)


def write_tensors(source: Source, path: Path, progress: Callable[[float], None]) -> None:
    """Writes all tensors; reports progress from 0 to 1."""
    pieces = _pieces(source)
    total = sum(piece.num_bytes for piece in pieces)
    num_done = 0
    with path.open("wb") as file:
        file.write(_header(pieces))
        for piece in pieces:
            values = piece.values()
            assert values.nbytes == piece.num_bytes
            file.write(values.data)
            num_done += piece.num_bytes
            progress(num_done / total)


def count_bytes(source: Source) -> int:
    """The size of the file that ``write_tensors`` would write."""
    return sum(piece.num_bytes for piece in _pieces(source))


def count_weights(source: Source) -> int:
    """Number of elements in all tensors."""
    return sum(int(np.prod(piece.shape)) for piece in _pieces(source))


def unpack(tensor: Any) -> Array:
    """A tensor's values, dequantised; bfloat16 as uint16 bits, because numpy has no such type."""
    kind = tensor.tensor_type
    if kind == GGMLQuantizationType.F16:
        return np.asarray(tensor.data)
    if kind == GGMLQuantizationType.BF16:
        return np.asarray(tensor.data).view(np.uint16)
    try:
        return np.asarray(dequantize(tensor.data, kind), dtype=np.float32)
    except NotImplementedError:
        raise Misconfigured(f"{tensor.name!r} is quantised as {kind.name}, which is not supported") from None


def unpermute(weight: Array, num_heads: int) -> Array:
    """GGUF interleaves the rotated pairs of a Llama's q and k rows; Hugging Face keeps them half a head apart."""
    rows, columns = weight.shape
    return weight.reshape(num_heads, rows // num_heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def _pieces(source: Source) -> list[_Piece]:
    num_heads = source.shape("attention.head_count")
    heads = {"attn_q": num_heads, "attn_k": source.shape("attention.head_count_kv", num_heads)}
    is_permuted = source.architecture == "llama"  # the other architectures have the layout of Hugging Face
    return [
        _Piece(
            _hf_name(source.architecture, tensor.name),
            tensor,
            heads.get(tensor.name.split(".")[-2], 0) if is_permuted else 0,
        )
        for tensor in source.tensors
        if tensor.name != ROPE_FACTORS
    ]


def _hf_name(architecture: str, name: str) -> str:
    if name in _TOP_NAMES:
        return _TOP_NAMES[name]
    names = _LAYER_NAMES | _OWN_NAMES.get(architecture, {})
    block, _, rest = name.partition(".")
    layer, _, kind = rest.partition(".")
    if block != "blk" or not layer.isdecimal() or kind not in names:
        raise Misconfigured(f"{architecture} models with a tensor {name!r} are not supported")
    return f"model.layers.{layer}.{names[kind]}"


def _header(pieces: list[_Piece]) -> bytes:
    """The safetensors header: its length in 8 bytes, then dtype, shape and offsets of each tensor as JSON."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for piece in pieces:
        end = offset + piece.num_bytes
        header[piece.name] = {"dtype": piece.dtype, "shape": piece.shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text
