"""LoRA adapters in PyTorch: what they add to the products of a layer, for the rows that ask. Knows no sequences.

The base product is computed for all rows together; an adapter's two small products follow for its own rows, in float32
and in tiles that were verified as the model's are, so that a row's result is its own whatever stands beside it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from axon.engine.batch import Batch
from axon.engine.load.adapter import AdapterWeights, Pair, read_adapter
from axon.engine.load.architecture import Architecture
from axon.engine.pytorch.tiles import Linear, proven_sizes, tile

Adapt = Callable[[int, str, torch.Tensor, torch.Tensor], torch.Tensor]
"""Adds the adapters' parts to a product of a layer: (layer, product, its input rows, its output rows)."""
PRODUCTS: Mapping[str, tuple[str, ...]] = {
    "qkv": ("q", "k", "v"),
    "output": ("o",),
    "gate_up": ("gate", "up"),
    "down": ("down",),
}
"""The modules whose outputs stand side by side in each product."""


@dataclass(frozen=True, slots=True)
class _Up:
    """The second product of one module: from a slice of the first one's outputs to a slice of the base product's."""

    inputs: slice
    outputs: slice
    linear: Linear


@dataclass(frozen=True, slots=True)
class _LowRank:
    """What an adapter adds to one product."""

    down: Linear
    ups: tuple[_Up, ...]


class LowRankAdapter:
    """One adapter, ready to be computed."""

    def __init__(self, weights: AdapterWeights, architecture: Architecture) -> None:
        sizes = _num_outputs(architecture)
        self._layers = [
            {product: low_rank for product in PRODUCTS if (low_rank := _stacked(layer, product, sizes)) is not None}
            for layer in weights.layers
        ]
        linears = [linear for layer in self._layers for each in layer.values() for linear in _linears(each)]
        self._sizes = proven_sizes(linears) or (1,)  # a row that is computed alone is its own

    def add(self, layer: int, product: str, inputs: torch.Tensor, outputs: torch.Tensor, rows: torch.Tensor) -> None:
        """Adds its part to these rows of a product's outputs."""
        if (low_rank := self._layers[layer].get(product)) is None:
            return
        tiling = tile(len(rows), self._sizes)
        padded = torch.cat([rows, rows[:1].expand(sum(tiling) - len(rows))])
        inner = low_rank.down(inputs[padded].float(), tiling)
        for up in low_rank.ups:
            more = up.linear(inner[:, up.inputs].contiguous(), tiling)[: len(rows)]
            outputs[rows, up.outputs] += more.to(outputs.dtype)


class LowRankAdapters:
    """The adapters that a model's steps may ask for."""

    def __init__(self, architecture: Architecture) -> None:
        self._architecture = architecture
        self._held: dict[str, LowRankAdapter] = {}

    @torch.inference_mode()
    def read(self, folder: Path) -> tuple[LowRankAdapter, int]:
        """Reads an adapter's folder; raises ``Misconfigured``."""
        weights = read_adapter(folder, self._architecture)
        return LowRankAdapter(weights, self._architecture), weights.num_bytes

    def hold(self, digest: str, adapter: LowRankAdapter) -> None:
        """From now on steps may ask for it."""
        self._held[digest] = adapter

    def drop(self, digest: str) -> None:
        """No step will ask for it any more."""
        self._held.pop(digest, None)

    def of(self, batch: Batch) -> Adapt | None:
        """What the adapters of a batch's rows add; None where no row has one."""
        rows: dict[str, list[int]] = {}
        first = 0
        for span in batch.spans:
            if span.adapter:
                rows.setdefault(span.adapter, []).extend(range(first, first + len(span.token_ids)))
            first += len(span.token_ids)
        if not rows:
            return None
        asked = [(self._held[digest], torch.tensor(each)) for digest, each in rows.items()]

        def adapt(layer: int, product: str, inputs: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor:
            for adapter, own in asked:
                adapter.add(layer, product, inputs, outputs, own)
            return outputs

        return adapt


def _num_outputs(architecture: Architecture) -> dict[str, int]:
    heads, kv_heads = (count * architecture.head_dim for count in (architecture.num_heads, architecture.num_kv_heads))
    inner, hidden = architecture.intermediate_size, architecture.hidden_size
    return {"q": heads, "k": kv_heads, "v": kv_heads, "o": hidden, "gate": inner, "up": inner, "down": hidden}


def _stacked(layer: Mapping[str, Pair], product: str, sizes: Mapping[str, int]) -> _LowRank | None:
    """The adapter's part of a product: the first products of all its modules are stacked, the second ones are not."""
    downs: list[torch.Tensor] = []
    ups: list[_Up] = []
    first_input = first_output = 0
    for module in PRODUCTS[product]:
        end = first_output + sizes[module]
        if (pair := layer.get(module)) is not None:
            rank = len(pair.down)
            ups.append(
                _Up(slice(first_input, first_input + rank), slice(first_output, end), Linear(torch.tensor(pair.up)))
            )
            downs.append(torch.tensor(pair.down))
            first_input += rank
        first_output = end
    return _LowRank(Linear(torch.cat(downs)), tuple(ups)) if ups else None


def _linears(low_rank: _LowRank) -> list[Linear]:
    return [low_rank.down, *(up.linear for up in low_rank.ups)]
