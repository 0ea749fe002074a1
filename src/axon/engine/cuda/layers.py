"""A decoder layer's weights on the device, and the rotary table. Computes nothing else."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import torch

from axon.engine.load.architecture import Architecture


class Source(Protocol):
    """Tensors by name; see ``axon.engine.load.weights``."""

    def take(self, name: str) -> torch.Tensor: ...
    def take_stacked(self, names: Iterable[str]) -> torch.Tensor: ...


@dataclass(frozen=True, slots=True)
class Layer:
    """One decoder layer's weights; q, k, v and gate, up are stacked along their outputs."""

    input_norm: torch.Tensor
    qkv: torch.Tensor
    output: torch.Tensor
    mlp_norm: torch.Tensor
    gate_up: torch.Tensor
    down: torch.Tensor
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


def load_layer(architecture: Architecture, weights: Source, index: int, device: torch.device) -> Layer:
    """Loads one layer onto the device."""
    prefix = f"model.layers.{index}"
    attention = [f"{prefix}.self_attn.{name}_proj" for name in ("q", "k", "v")]

    def take(name: str) -> torch.Tensor:
        return weights.take(f"{prefix}.{name}.weight").to(device)

    return Layer(
        input_norm=take("input_layernorm"),
        qkv=weights.take_stacked(f"{name}.weight" for name in attention).to(device),
        output=take("self_attn.o_proj"),
        mlp_norm=take("post_attention_layernorm"),
        gate_up=weights.take_stacked([f"{prefix}.mlp.{name}_proj.weight" for name in ("gate", "up")]).to(device),
        down=take("mlp.down_proj"),
        bias=weights.take_stacked(f"{name}.bias" for name in attention).to(device) if architecture.qkv_bias else None,
        query_norm=take("self_attn.q_norm") if architecture.qk_norm else None,
        key_norm=take("self_attn.k_norm") if architecture.qk_norm else None,
    )
