"""Llama and its relatives in PyTorch, on a ragged batch of rows. Knows no sequences and no sampling."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import torch

from axon.engine.load.architecture import Architecture
from axon.engine.parallel.group import Alone, Group
from axon.engine.pytorch.low_rank import Adapt
from axon.engine.pytorch.tiles import Linear, Tiling

Attend = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""Gives what the queries [row, head, dim] of a layer see of keys and values [row, KV head, dim]."""


class Tensors(Protocol):
    """The tensors of a model by name."""

    def take(self, name: str) -> torch.Tensor: ...
    def take_stacked(self, names: Iterable[str]) -> torch.Tensor: ...


@dataclass(frozen=True, slots=True)
class Layer:
    """One decoder layer's weights; q, k, v and gate, up are stacked, so that one product computes them together."""

    input_norm: torch.Tensor
    qkv: Linear
    output: Linear
    mlp_norm: torch.Tensor
    gate_up: Linear
    down: Linear
    qkv_bias: torch.Tensor | None = None
    head_norm: torch.Tensor | None = None
    """Norm weights [head, dim], of the query heads and then the key heads."""


@dataclass(frozen=True, slots=True)
class _Products:
    """The products of a layer in one step, with what adapters add to them."""

    layer: Layer
    index: int
    tiling: Tiling
    adapt: Adapt | None

    def qkv(self, rows: torch.Tensor) -> torch.Tensor:
        return self._of("qkv", self.layer.qkv, rows)

    def output(self, rows: torch.Tensor) -> torch.Tensor:
        return self._of("output", self.layer.output, rows)

    def gate_up(self, rows: torch.Tensor) -> torch.Tensor:
        return self._of("gate_up", self.layer.gate_up, rows)

    def down(self, rows: torch.Tensor) -> torch.Tensor:
        return self._of("down", self.layer.down, rows)

    def _of(self, product: str, linear: Linear, rows: torch.Tensor) -> torch.Tensor:
        outputs = linear(rows, self.tiling)
        return outputs if self.adapt is None else self.adapt(self.index, product, rows, outputs)


class Llama:
    """RMSNorm, rotary embedding, grouped-query attention, SwiGLU; biases and head norms where a model has them.

    Each rank of a group holds a part of the heads, of the MLP's inner dimension and of the vocabulary.
    """

    def __init__(
        self, architecture: Architecture, weights: Tensors, group: Group | None = None, *, has_head: bool = True
    ) -> None:
        """``has_head`` is false for a model that gives vectors: it has no logits."""
        self._architecture = architecture
        self._group = group or Alone()
        self._embedding = weights.take("model.embed_tokens.weight")
        self._layers = [_load_layer(architecture, weights, index) for index in range(architecture.num_layers)]
        self._norm = weights.take("model.norm.weight")
        self._head = _load_head(architecture, weights, self._embedding) if has_head else None
        self._cos, self._sin = (each.to(self._norm) for each in _rope_table(architecture))

    @property
    def linears(self) -> list[Linear]:
        """Every product of the model, for verifying tile sizes."""
        layers = [linear for each in self._layers for linear in (each.qkv, each.output, each.gate_up, each.down)]
        return [*layers, self._head] if self._head else layers

    def forward(
        self,
        token_ids: torch.Tensor,
        positions: torch.Tensor,
        tiling: Tiling,
        attend: Attend,
        adapt: Adapt | None = None,
    ) -> torch.Tensor:
        """The hidden state of every row after the last layer; ``adapt`` adds what LoRA adapters add to products."""
        hidden = self._embed(token_ids)
        cos, sin = self._cos[positions], self._sin[positions]
        for index, layer in enumerate(self._layers):
            products = _Products(layer, index, tiling, adapt)
            queries, keys, values = self._project(products, hidden, cos, sin)
            seen = attend(index, queries, keys, values)
            hidden = hidden + self._group.add_up(products.output(seen))
            hidden = hidden + self._group.add_up(self._mlp(products, hidden))
        return hidden

    def logits(self, hidden: torch.Tensor, tiling: Tiling) -> torch.Tensor:
        """The logits [row, vocabulary]; with several ranks, whole on the leading one only."""
        assert self._head is not None
        logits = self._group.gather(self._head(self.states(hidden), tiling))
        return logits[:, : self._architecture.vocab_size]

    def states(self, hidden: torch.Tensor) -> torch.Tensor:
        """The last hidden states as others see them: normalised."""
        return self._normalise(hidden, self._norm)

    def _embed(self, token_ids: torch.Tensor) -> torch.Tensor:
        """The embedding; with a vocabulary cut over ranks, every rank but the token's own adds zeros."""
        share = self._group.share
        if not self._group.is_cut:
            return self._embedding[token_ids]
        here = share.vocabulary(self._architecture.vocab_size)
        is_here = (token_ids >= here.start) & (token_ids < here.stop)
        rows = self._embedding[torch.where(is_here, token_ids - here.start, 0)]
        return self._group.add_up(rows * is_here.unsqueeze(1))

    def _project(
        self, products: "_Products", hidden: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        shape, layer = self._architecture, products.layer
        rows = products.qkv(self._normalise(hidden, layer.input_norm))
        if layer.qkv_bias is not None:
            rows = rows + layer.qkv_bias
        heads = rows.view(rows.shape[0], -1, shape.head_dim)
        rotated, values = torch.split(heads, [shape.num_heads + shape.num_kv_heads, shape.num_kv_heads], dim=1)
        if layer.head_norm is not None:
            rotated = self._normalise(rotated, layer.head_norm)
        queries, keys = torch.split(_rotate(rotated, cos, sin), [shape.num_heads, shape.num_kv_heads], dim=1)
        return queries, keys, values

    def _mlp(self, products: "_Products", hidden: torch.Tensor) -> torch.Tensor:
        gate, up = products.gate_up(self._normalise(hidden, products.layer.mlp_norm)).chunk(2, dim=1)
        # Not F.silu: its vector and scalar paths differ in the last bit, and the row count decides between them.
        return products.down(gate / (1 + torch.exp(-gate)) * up)

    def _normalise(self, hidden: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        wide = hidden.float()
        scale = torch.rsqrt((wide * wide).mean(-1, keepdim=True) + self._architecture.rms_norm_eps)
        return (wide * scale).to(hidden.dtype) * weight


def _rotate(heads: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotates the pairs (i, i + dim/2) of every head [row, head, dim] by its row's angles."""
    first, second = heads.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def _rope_table(architecture: Architecture) -> tuple[torch.Tensor, torch.Tensor]:
    frequencies = torch.tensor(architecture.rope.frequencies(architecture.head_dim), dtype=torch.float64)
    angles = torch.outer(torch.arange(architecture.max_model_len, dtype=torch.float64), frequencies)
    return angles.cos().unsqueeze(1), angles.sin().unsqueeze(1)


def _load_head(architecture: Architecture, weights: Tensors, embedding: torch.Tensor) -> Linear:
    return Linear(embedding if architecture.tied_embedding else weights.take("lm_head.weight"))


def _load_layer(architecture: Architecture, weights: Tensors, index: int) -> Layer:
    prefix = f"model.layers.{index}"
    attention = [f"{prefix}.self_attn.{name}_proj" for name in ("q", "k", "v")]
    return Layer(
        input_norm=weights.take(f"{prefix}.input_layernorm.weight"),
        qkv=Linear(weights.take_stacked(f"{name}.weight" for name in attention)),
        output=Linear(weights.take(f"{prefix}.self_attn.o_proj.weight")),
        mlp_norm=weights.take(f"{prefix}.post_attention_layernorm.weight"),
        gate_up=Linear(weights.take_stacked([f"{prefix}.mlp.{name}_proj.weight" for name in ("gate", "up")])),
        down=Linear(weights.take(f"{prefix}.mlp.down_proj.weight")),
        qkv_bias=weights.take_stacked(f"{name}.bias" for name in attention) if architecture.qkv_bias else None,
        head_norm=_load_head_norm(architecture, weights, prefix) if architecture.qk_norm else None,
    )


def _load_head_norm(architecture: Architecture, weights: Tensors, prefix: str) -> torch.Tensor:
    queries, keys = (weights.take(f"{prefix}.self_attn.{name}_norm.weight") for name in "qk")
    return torch.cat([queries.expand(architecture.num_heads, -1), keys.expand(architecture.num_kv_heads, -1)])
