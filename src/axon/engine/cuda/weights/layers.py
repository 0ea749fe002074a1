"""A decoder layer's weights on the device, and the rotary table. Computes nothing else."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch.nn import functional

from axon.engine.cuda.rows import ExpertBiases, Rows, quantise
from axon.engine.cuda.weights.packed import Packed, pack
from axon.engine.cuda.weights.upload import Upload
from axon.engine.load.architecture import Architecture
from axon.engine.load.quantised.four_bit_matrices import FourBitParts, unpacked
from axon.engine.load.rope import Rope


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
    router: torch.Tensor | None = None
    """[expert, input], where the MLP is a mixture of experts: ``gate_up`` and ``down`` then hold those of all experts,
    one below the other."""
    attention_post: torch.Tensor | None = None
    """Norm of attention's output, before it is added to the residual."""
    mlp_post: torch.Tensor | None = None
    """Norm of the MLP's output, likewise."""
    output_bias: torch.Tensor | None = None
    sinks: torch.Tensor | None = None
    """A score of each head that takes part in every softmax."""
    biases: ExpertBiases | None = None

    @property
    def matrices(self) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """The matrices of its products, in their order."""
        return self.qkv, self.output, self.gate_up, self.down


def rope_table(
    architecture: Architecture, rope: Rope, max_model_len: int, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines of a rotary embedding, [position, head_dim / 2] each, in float32; those of dimensions that no
    position turns come last (see ``head_order``)."""
    frequencies = torch.tensor(rope.frequencies(architecture.head_dim), dtype=torch.float64)
    angles = torch.outer(torch.arange(max_model_len, dtype=torch.float64), frequencies)
    num_still = architecture.head_dim // 2 - len(frequencies)
    cos = functional.pad(rope.scale * angles.cos(), (0, num_still), value=1.0)
    sin = functional.pad(rope.scale * angles.sin(), (0, num_still))
    return cos.float().to(device), sin.float().to(device)


def head_order(architecture: Architecture) -> torch.Tensor | None:
    """The order of a head's dimensions in which each is turned with the one half a head behind it, where positions turn
    only a part of each head; None where they turn it all. Queries and keys keep their products in any order."""
    dim, turned = architecture.head_dim, architecture.rope.rotary_dim(architecture.head_dim)
    if turned == dim:
        return None
    half, middle = turned // 2, (turned + dim) // 2
    order = [*range(half), *range(turned, middle), *range(half, turned), *range(middle, dim)]
    return torch.tensor(order)


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
    prefix, family = f"model.layers.{index}", architecture.family
    norms = family.norms
    attention = [f"{prefix}.self_attn.{name}_proj" for name in ("q", "k", "v")]

    def take(name: str) -> torch.Tensor:
        return weights.take(f"{prefix}.{name}.weight").to(device)

    experts = architecture.experts_of(index)
    mlps = [f"{prefix}.mlp.experts.{number}" for number in range(experts.count)] if experts else [f"{prefix}.mlp"]
    names = {
        "qkv": attention,
        "output": [f"{prefix}.self_attn.o_proj"],
        "gate_up": [f"{mlp}.{name}_proj" for mlp in mlps for name in ("gate", "up")],
        "down": [f"{mlp}.down_proj" for mlp in mlps],
    }
    listed = {product: [f"{name}.weight" for name in parts] for product, parts in names.items()}
    matrices: dict[str, Matrix] = load_packed(weights, listed, device) if packs and not fp8 else {}
    others = {product: parts for product, parts in listed.items() if product not in matrices}
    matrices |= load_matrices(weights, others, device, fp8=fp8)
    if isinstance(qkv := matrices["qkv"], Rows):
        matrices["qkv"] = _ordered(qkv, architecture)
    return Layer(
        input_norm=take(norms.input),
        mlp_norm=take(norms.mlp),
        attention_post=take(norms.attention_post) if norms.attention_post else None,
        mlp_post=take(norms.mlp_post) if norms.mlp_post else None,
        router=take("mlp.gate") if experts else None,
        bias=weights.take_stacked(f"{name}.bias" for name in attention).to(device) if architecture.qkv_bias else None,
        output_bias=weights.take(f"{prefix}.self_attn.o_proj.bias").to(device) if family.output_bias else None,
        sinks=weights.take(f"{prefix}.self_attn.sinks").to(device) if family.has_sinks else None,
        biases=_load_biases(weights, prefix, names, device) if experts and experts.has_bias else None,
        query_norm=take("self_attn.q_norm") if architecture.qk_norm else None,
        key_norm=take("self_attn.k_norm") if architecture.qk_norm else None,
        **matrices,
    )


def _load_biases(weights: Source, prefix: str, names: dict[str, list[str]], device: torch.device) -> ExpertBiases:
    def take(product: str) -> torch.Tensor:
        return weights.take_stacked([f"{name}.bias" for name in names[product]]).to(device)

    router = weights.take(f"{prefix}.mlp.gate.bias").to(device)
    return ExpertBiases(router=router, gate_up=take("gate_up"), down=take("down"))


def _ordered(qkv: Rows, architecture: Architecture) -> Rows:
    """The matrix of queries, keys and values with the outputs of queries and keys in the order of ``head_order``."""
    order = head_order(architecture)
    if order is None:
        return qkv
    turned = (architecture.num_heads + architecture.num_kv_heads) * architecture.head_dim
    heads = qkv.values[:turned].view(-1, architecture.head_dim, qkv.values.shape[1])[:, order.to(qkv.values.device)]
    return Rows(torch.cat([heads.reshape(turned, -1), qkv.values[turned:]]))


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
