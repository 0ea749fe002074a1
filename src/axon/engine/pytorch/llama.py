"""Llama and its relatives in PyTorch, on a ragged batch of rows. Knows no sequences and no sampling."""

from dataclasses import dataclass
from typing import Protocol

import torch

from axon.engine.load.architecture import Architecture
from axon.engine.load.rope import Rope
from axon.engine.parallel.group import Alone, Group
from axon.engine.pytorch.low_rank import Adapt
from axon.engine.pytorch.mlp import ExpertsMlp, GatedMlp, Tensors, load_mlp
from axon.engine.pytorch.tiles import Linear, Tiling


class Attend(Protocol):
    """Gives what the queries [row, head, dim] of a layer see of keys and values [row, KV head, dim]."""

    def __call__(
        self,
        layer: int,
        queries: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        /,
        *,
        sinks: torch.Tensor | None,
    ) -> torch.Tensor: ...


@dataclass(frozen=True, slots=True)
class Layer:
    """One decoder layer's weights; q, k and v are stacked, so that one product computes them together."""

    input_norm: torch.Tensor
    qkv: Linear
    output: Linear
    mlp_norm: torch.Tensor
    mlp: GatedMlp | ExpertsMlp
    attention_post: torch.Tensor | None = None
    """Norm of attention's output, before it is added to the hidden rows."""
    mlp_post: torch.Tensor | None = None
    """Norm of the MLP's output, likewise."""
    qkv_bias: torch.Tensor | None = None
    output_bias: torch.Tensor | None = None
    sinks: torch.Tensor | None = None
    """A score of each head [head] that takes part in every softmax."""
    head_norm: torch.Tensor | None = None
    """Norm weights [head, dim], of the query heads and then the key heads."""


@dataclass(frozen=True, slots=True)
class _Products:
    """The products of a layer in one step, with what adapters add to them."""

    layer: Layer
    index: int
    tiling: Tiling
    adapt: Adapt | None

    def of(self, product: str, linear: Linear, rows: torch.Tensor) -> torch.Tensor:
        """One of them: ``qkv``, ``output``, ``gate_up`` or ``down``."""
        outputs = linear(rows, self.tiling)
        return outputs if self.adapt is None else self.adapt(self.index, product, rows, outputs)


class Llama:
    """RMSNorm, rotary embedding, grouped-query attention, a gated MLP; biases, norms, experts as its family has them.

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
        ropes = {architecture.rope_of(index) for index in range(architecture.num_layers)}
        self._tables = {rope: _rope_table(architecture, rope, self._embedding) for rope in ropes}

    @property
    def linears(self) -> list[Linear]:
        """Every product of the model, for verifying tile sizes."""
        layers = [linear for each in self._layers for linear in (each.qkv, each.output, *each.mlp.linears)]
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
        angles = {rope: (cos[positions], sin[positions]) for rope, (cos, sin) in self._tables.items()}
        for index, layer in enumerate(self._layers):
            cos, sin = angles[self._architecture.rope_of(index)]
            products = _Products(layer, index, tiling, adapt)
            queries, keys, values = self._project(products, hidden, cos, sin)
            seen = attend(index, queries, keys, values, sinks=layer.sinks)
            seen = products.of("output", layer.output, seen)
            if layer.output_bias is not None:
                seen = seen + layer.output_bias
            hidden = self._add(hidden, seen, layer.attention_post)
            rows = layer.mlp(self._normalise(hidden, layer.mlp_norm), tiling, products.of)
            hidden = self._add(hidden, rows, layer.mlp_post)
        return hidden

    def _add(self, hidden: torch.Tensor, part: torch.Tensor, norm: torch.Tensor | None) -> torch.Tensor:
        """The hidden rows and a block's output, of which this rank has a part; a norm is for the whole output."""
        whole = self._group.add_up(part)
        return hidden + (whole if norm is None else self._normalise(whole, norm))

    def logits(self, hidden: torch.Tensor, tiling: Tiling) -> torch.Tensor:
        """The logits [row, vocabulary]; with several ranks, whole on the leading one only."""
        assert self._head is not None
        logits = self._group.gather(self._head(self.states(hidden), tiling))
        return logits[:, : self._architecture.vocab_size]

    def states(self, hidden: torch.Tensor) -> torch.Tensor:
        """The last hidden states as others see them: normalised."""
        return self._normalise(hidden, self._norm)

    def _embed(self, token_ids: torch.Tensor) -> torch.Tensor:
        """The embedding, scaled where the family scales it."""
        scale = self._architecture.embedding_scale
        rows = self._find_rows(token_ids)
        return rows if scale == 1.0 else rows * torch.tensor(scale).to(rows)

    def _find_rows(self, token_ids: torch.Tensor) -> torch.Tensor:
        """Rows of the embedding; with a vocabulary cut over ranks, every rank but the token's own adds zeros."""
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
        rows = products.of("qkv", layer.qkv, self._normalise(hidden, layer.input_norm))
        if layer.qkv_bias is not None:
            rows = rows + layer.qkv_bias
        heads = rows.view(rows.shape[0], -1, shape.head_dim)
        rotated, values = torch.split(heads, [shape.num_heads + shape.num_kv_heads, shape.num_kv_heads], dim=1)
        if layer.head_norm is not None:
            rotated = self._normalise(rotated, layer.head_norm)
        queries, keys = torch.split(_rotate(rotated, cos, sin), [shape.num_heads, shape.num_kv_heads], dim=1)
        return queries, keys, values

    def _normalise(self, hidden: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        wide = hidden.float()
        scale = torch.rsqrt((wide * wide).mean(-1, keepdim=True) + self._architecture.rms_norm_eps)
        # A norm in the model's dtype is multiplied in it; one in float32, as Gemma's are, before rounding.
        return ((wide * scale).to(weight.dtype) * weight).to(hidden.dtype)


def _rotate(heads: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotates the pairs (i, i + half) of every head [row, head, dim] by its row's angles, ``half`` of them."""
    half = cos.shape[-1]
    first, second, rest = torch.split(heads, [half, half, heads.shape[-1] - 2 * half], dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin, rest], dim=-1)


def _rope_table(architecture: Architecture, rope: Rope, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines [position, 1, pair], in the dtype and on the device of ``like``."""
    frequencies = torch.tensor(rope.frequencies(architecture.head_dim), dtype=torch.float64)
    angles = torch.outer(torch.arange(architecture.max_model_len, dtype=torch.float64), frequencies).unsqueeze(1)
    return (rope.scale * angles.cos()).to(like), (rope.scale * angles.sin()).to(like)


def _load_head(architecture: Architecture, weights: Tensors, embedding: torch.Tensor) -> Linear:
    return Linear(embedding if architecture.tied_embedding else weights.take("lm_head.weight"))


def _load_layer(architecture: Architecture, weights: Tensors, index: int) -> Layer:
    prefix, norms = f"model.layers.{index}", architecture.family.norms

    def norm(name: str) -> torch.Tensor:
        return weights.take(f"{prefix}.{name}.weight")

    attention = [f"{prefix}.self_attn.{name}_proj" for name in ("q", "k", "v")]
    return Layer(
        input_norm=norm(norms.input),
        qkv=Linear(weights.take_stacked(f"{name}.weight" for name in attention)),
        output=Linear(weights.take(f"{prefix}.self_attn.o_proj.weight")),
        mlp_norm=norm(norms.mlp),
        attention_post=norm(norms.attention_post) if norms.attention_post else None,
        mlp_post=norm(norms.mlp_post) if norms.mlp_post else None,
        mlp=load_mlp(architecture, weights, index),
        qkv_bias=weights.take_stacked(f"{name}.bias" for name in attention) if architecture.qkv_bias else None,
        output_bias=weights.take(f"{prefix}.self_attn.o_proj.bias") if architecture.family.output_bias else None,
        sinks=weights.take(f"{prefix}.self_attn.sinks") if architecture.family.has_sinks else None,
        head_norm=_load_head_norm(architecture, weights, prefix) if architecture.qk_norm else None,
    )


def _load_head_norm(architecture: Architecture, weights: Tensors, prefix: str) -> torch.Tensor:
    queries, keys = (weights.take(f"{prefix}.self_attn.{name}_norm.weight") for name in "qk")
    return torch.cat([queries.expand(architecture.num_heads, -1), keys.expand(architecture.num_kv_heads, -1)])
