"""A decoder layer's weights on the device, and the rotary table. Computes nothing else."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import torch

from axon.engine.cuda.packed import Packed, pack
from axon.engine.cuda.rows import Rows, quantise
from axon.engine.cuda.upload import Upload
from axon.engine.load.architecture import Architecture
from axon.engine.load.four_bit_matrices import FourBitParts, unpacked


class Source(Protocol):
    """Tensors by name; see ``axon.engine.load.weights``."""

    def take(self, name: str) -> torch.Tensor: ...
    def take_stacked(self, names: Iterable[str]) -> torch.Tensor: ...
    def take_fp8(self, names: Iterable[str]) -> tuple[torch.Tensor, torch.Tensor] | None: ...
    def take_four_bits(self, names: Iterable[str]) -> FourBitParts | None: ...


Matrix = Rows | Packed


@dataclass(frozen=True, slots=True)
class Layer:
    """One decoder layer's weights; q, k, v and gate, up are stacked along their outputs."""

    input_norm: torch.Tensor
    qkv: Matrix
    output: Matrix
    mlp_norm: torch.Tensor
    gate_up: Matrix
    down: Matrix
    bias: torch.Tensor | None
    query_norm: torch.Tensor | None
    key_norm: torch.Tensor | None

    @property
    def matrices(self) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """The matrices of its products, in their order."""
        return self.qkv, self.output, self.gate_up, self.down


def rope_table(
    architecture: Architecture, max_model_len: int, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines of the rotary embedding, [position, head_dim / 2] each, in float32."""
    frequencies = torch.tensor(architecture.rope.frequencies(architecture.head_dim), dtype=torch.float64)
    angles = torch.outer(torch.arange(max_model_len, dtype=torch.float64), frequencies)
    return angles.cos().float().to(device), angles.sin().float().to(device)


def load_layer(
    architecture: Architecture,
    weights: Source,
    index: int,
    device: torch.device,
    *,
    fp8: bool = False,
    packs: bool = False,
) -> Layer:
    """Loads one layer onto the device; with ``fp8`` its matrices are rounded there, unless the files have them so.

    ``packs``: matrices that the files have in four bits stay so.
    """
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
    listed = {product: [f"{name}.weight" for name in parts] for product, parts in names.items()}
    matrices: dict[str, Matrix] = load_packed(weights, listed, device) if packs and not fp8 else {}
    others = {product: parts for product, parts in listed.items() if product not in matrices}
    matrices |= load_matrices(weights, others, device, fp8=fp8)
    return Layer(
        input_norm=take("input_layernorm"),
        mlp_norm=take("post_attention_layernorm"),
        bias=weights.take_stacked(f"{name}.bias" for name in attention).to(device) if architecture.qkv_bias else None,
        query_norm=take("self_attn.q_norm") if architecture.qk_norm else None,
        key_norm=take("self_attn.k_norm") if architecture.qk_norm else None,
        **matrices,
    )


def load_packed(weights: Source, names: dict[str, list[str]], device: torch.device) -> dict[str, Matrix]:
    """Matrices that the files have in four bits, on the device and stacked; unpacked where no kernel takes them."""
    taken = {product: weights.take_four_bits(parts) for product, parts in names.items()}
    if isinstance(weights, Upload) and any(taken.values()):
        weights.settle()
    matrices: dict[str, Matrix] = {}
    for product in names:
        found = taken.pop(product)  # freed once it is packed
        if found is not None:
            layout, parts = found[0], [{part: each.to(device) for part, each in one.items()} for one in found[1]]
            whole = pack(layout, parts)
            matrices[product] = whole or Rows(torch.cat([unpacked(layout, one).to(torch.bfloat16) for one in parts]))
    return matrices


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
