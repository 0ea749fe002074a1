"""Encoders of the BERT family in PyTorch, on packed inputs without padding. Knows no text and no request.

The rows of all inputs stand one below the other; attention is computed input by input. On a CPU, products are computed
in tiles of proven sizes, so that an input's vector is bitwise the same alone and in any batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch.nn import functional

from axon.engine.config import EngineConfig
from axon.engine.encoder.packing import Group, by_length, groups_of, put_back, spans_of
from axon.engine.encoder.pooling import Pool, vectors_of
from axon.engine.load.encoder import read_encoder, tensor_prefix
from axon.engine.load.weights import Weights
from axon.engine.pytorch.tiles import Linear, Tiling, proven_sizes, tile
from axon.errors import Misconfigured

_DTYPES = ("auto", "float32")


@dataclass(frozen=True, slots=True)
class _Norm:
    """LayerNorm: mean 0 and variance 1 over a row, then a weight and a bias."""

    weight: torch.Tensor
    bias: torch.Tensor
    eps: float

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(rows, rows.shape[-1:], self.weight, self.bias, self.eps)


@dataclass(frozen=True, slots=True)
class _Product:
    """A matrix product with a bias: in tiles on a CPU, plain on a GPU."""

    bias: torch.Tensor
    linear: Linear | None = None
    weight: torch.Tensor | None = None

    def __call__(self, rows: torch.Tensor, tiling: Tiling) -> torch.Tensor:
        if self.linear is not None:
            return self.linear(rows, tiling) + self.bias
        assert self.weight is not None
        return functional.linear(rows, self.weight, self.bias)


@dataclass(frozen=True, slots=True)
class _Layer:
    """One encoder layer; queries, keys and values are stacked, so that one product computes them together."""

    qkv: _Product
    output: _Product
    norm: _Norm
    up: _Product
    down: _Product
    last_norm: _Norm


class BertEncoder:
    """A BERT, RoBERTa or XLM-RoBERTa with the pooling of its sentence-transformers configuration."""

    @torch.inference_mode()
    def __init__(self, config: EngineConfig, model_dir: Path) -> None:
        """``config`` names the device; raises ``Misconfigured`` for another arithmetic than float32."""
        if config.dtype not in _DTYPES or config.tensor_parallel > 1:
            raise Misconfigured("an embedding model computes in float32 on one device: remove engine.dtype and ranks")
        self._shape = shape = read_encoder(model_dir)
        self._device: Literal["cpu", "cuda"] = "cuda" if config.device == "cuda" else "cpu"
        if self._device == "cpu" and config.threads:
            torch.set_num_threads(config.threads)
        self.max_model_len = min(config.max_model_len or shape.max_model_len, shape.max_model_len)
        self.vocab_size = shape.vocab_size
        self.kernel = f"encoder-{self._device}-float32"
        with Weights(model_dir, torch.float32) as weights:
            self._load(weights, tensor_prefix(model_dir))
        self._pool = Pool(shape.pooling, shape.normalizes)
        linears = [each.linear for layer in self._layers for each in (layer.qkv, layer.output, layer.up, layer.down)]
        found = [linear for linear in linears if linear is not None]
        self._sizes = proven_sizes(found) if found else ()
        self._activate = _activation(shape.activation)

    @torch.inference_mode()
    def encode(self, batch: Sequence[Sequence[int]], second_starts: Sequence[int] = ()) -> list[bytes]:
        """The vectors of the inputs, in order. Inputs of one length share a call of attention.

        From an index of ``second_starts`` on, an input's tokens have the second type.
        """
        order = by_length(batch)
        lengths = [len(batch[index]) for index in order]
        starts = [second_starts[index] for index in order] if second_starts else []
        hidden = self._forward([batch[index] for index in order], lengths, starts)
        return put_back(order, vectors_of(hidden, spans_of(lengths), self._pool))

    def _forward(self, batch: Sequence[Sequence[int]], lengths: list[int], starts: list[int]) -> torch.Tensor:
        """The hidden state of every row after the last layer; rows of zeros fill the last tile."""
        num_rows = sum(lengths)
        tiling = tile(num_rows, self._sizes) if self._sizes else Tiling((num_rows,))
        num_pad = sum(tiling) - num_rows
        ids = [token_id for token_ids in batch for token_id in token_ids] + [0] * num_pad
        positions = [self._shape.first_position + at for length in lengths for at in range(length)] + [0] * num_pad
        token_ids, places = torch.tensor(ids, device=self._device), torch.tensor(positions, device=self._device)
        types = self._types_of(lengths, starts, num_pad)
        hidden = self._embedding_norm(self._words[token_ids] + types + self._positions[places])
        groups = groups_of(lengths)
        for layer in self._layers:
            seen = self._attend(layer.qkv(hidden, tiling), groups)
            hidden = layer.norm(layer.output(seen, tiling) + hidden)
            inner = self._activate(layer.up(hidden, tiling))
            hidden = layer.last_norm(layer.down(inner, tiling) + hidden)
        return hidden

    def _attend(self, qkv: torch.Tensor, groups: list[Group]) -> torch.Tensor:
        """Full attention within each input."""
        heads, dim = self._shape.num_heads, self._shape.head_dim
        seen = torch.zeros(qkv.shape[0], heads * dim, device=qkv.device)
        for first, count, length in groups:
            rows = qkv[first : first + count * length].view(count, length, 3, heads, dim)
            queries, keys, values = rows.permute(2, 0, 3, 1, 4).unbind(0)
            found = functional.scaled_dot_product_attention(queries, keys, values)
            seen[first : first + count * length] = found.transpose(1, 2).reshape(count * length, heads * dim)
        return seen

    def _types_of(self, lengths: list[int], starts: list[int], num_pad: int) -> torch.Tensor:
        """The type embedding of every row: the first type's alone, unless the input is a pair."""
        if not any(starts) or len(self._types) < 2:
            return self._types[0]
        types = [
            int(0 < start <= at) for length, start in zip(lengths, starts, strict=True) for at in range(length)
        ] + [0] * num_pad
        return self._types[torch.tensor(types, device=self._device)]

    def _load(self, weights: Weights, prefix: str) -> None:
        def take(name: str) -> torch.Tensor:
            return weights.take(f"{prefix}{name}").to(self._device)

        def norm(name: str) -> _Norm:
            return _Norm(take(f"{name}.weight"), take(f"{name}.bias"), self._shape.norm_eps)

        def product(*names: str) -> _Product:
            weight = torch.cat([take(f"{name}.weight") for name in names])
            bias = torch.cat([take(f"{name}.bias") for name in names])
            return _Product(bias, Linear(weight)) if self._device == "cpu" else _Product(bias, weight=weight)

        self._words = take("embeddings.word_embeddings.weight")
        self._positions = take("embeddings.position_embeddings.weight")
        self._types = take("embeddings.token_type_embeddings.weight")
        self._embedding_norm = norm("embeddings.LayerNorm")
        self._layers = [
            _Layer(
                qkv=product(*(f"encoder.layer.{index}.attention.self.{each}" for each in ("query", "key", "value"))),
                output=product(f"encoder.layer.{index}.attention.output.dense"),
                norm=norm(f"encoder.layer.{index}.attention.output.LayerNorm"),
                up=product(f"encoder.layer.{index}.intermediate.dense"),
                down=product(f"encoder.layer.{index}.output.dense"),
                last_norm=norm(f"encoder.layer.{index}.output.LayerNorm"),
            )
            for index in range(self._shape.num_layers)
        ]


def _activation(name: str) -> Callable[[torch.Tensor], torch.Tensor]:
    if name == "relu":
        return functional.relu
    approximate = "none" if name == "gelu" else "tanh"
    return lambda rows: functional.gelu(rows, approximate=approximate)
