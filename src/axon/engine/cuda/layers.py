"""A decoder layer's weights on the device, and the rotary table. Computes nothing else."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import torch

from axon.engine.cuda.rows import Rows, quantise
from axon.engine.cuda.upload import Upload
from axon.engine.load.architecture import Architecture


class Source(Protocol):
    """Tensors by name; see ``axon.engine.load.weights``."""

    def take(self, name: str) -> torch.Tensor: ...
    def take_stacked(self, names: Iterable[str]) -> torch.Tensor: ...
    def take_fp8(self, names: Iterable[str]) -> tuple[torch.Tensor, torch.Tensor] | None: ...


@dataclass(frozen=True, slots=True)
class Layer:
    """One decoder layer's weights; q, k, v and gate, up are stacked along their outputs."""

    input_norm: torch.Tensor
    qkv: Rows
    output: Rows
    mlp_norm: torch.Tensor
    gate_up: Rows
    down: Rows
    bias: torch.Tensor | None
    query_norm: torch.Tensor | None
    key_norm: torch.Tensor | None


def rope_table(
    architecture: Architecture, max_model_len: int, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines of the rotary embedding, [position, head_dim / 2] each, in float32."""
    frequencies = torch.tensor(architecture.rope.frequencies(architecture.head_dim), dtype=torch.float64)
    angles = torch.outer(torch.arange(max_model_len, dtype=torch.float64), frequencies)
    return angles.cos().float().to(device), angles.sin().float().to(device)


def load_layer(
    architecture: Architecture, weights: Source, index: int, device: torch.device, *, fp8: bool = False
) -> Layer:
    """Loads one layer onto the device; with ``fp8`` its matrices are rounded there, unless the files have them so."""
    prefix = f"model.layers.{index}"
    attention = [f"{prefix}.self_attn.{name}_proj" for name in ("q", "k", "v")]

    def take(name: str) -> torch.Tensor:
        return weights.take(f"{prefix}.{name}.weight").to(device)

    names = {
        "qkv": attention,
        "output": [f"{prefix}.self_attn.o_proj"],
        "gate_up": [f"{prefix}.mlp.{name}_proj" for name in ("gate", "up")],
        "down": [f"{prefix}.mlp.down_proj"],
    }
    matrices = load_matrices(
        weights, {product: [f"{name}.weight" for name in parts] for product, parts in names.items()}, device, fp8=fp8
    )
    return Layer(
        input_norm=take("input_layernorm"),
        mlp_norm=take("post_attention_layernorm"),
        bias=weights.take_stacked(f"{name}.bias" for name in attention).to(device) if architecture.qkv_bias else None,
        query_norm=take("self_attn.q_norm") if architecture.qk_norm else None,
        key_norm=take("self_attn.k_norm") if architecture.qk_norm else None,
        **matrices,
    )


def load_matrices(weights: Source, names: dict[str, list[str]], device: torch.device, *, fp8: bool) -> dict[str, Rows]:
    """Matrices on the device, each stacked of those with its names; in fp8 as the files have them, else rounded."""
    matrices: dict[str, Rows] = {}
    stacked: dict[str, torch.Tensor] = {}
    for product, parts in names.items():
        taken = weights.take_fp8(parts) if fp8 else None
        if taken is None:
            stacked[product] = weights.take_stacked(parts).to(device)
        else:
            matrices[product] = Rows(taken[0].to(device), taken[1].to(device))
    if fp8 and stacked and isinstance(weights, Upload):
        weights.settle()
    for product in list(stacked):
        matrix = stacked.pop(product)  # freed once it is rounded
        matrices[product] = quantise(matrix) if fp8 else Rows(matrix)
    return matrices
