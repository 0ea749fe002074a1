"""Pages of a GPU's memory that hold LoRA adapters. Computes nothing.

The pages are taken once, at fixed addresses, so that CUDA graphs can read them. A page has room for 16 ranks of every
matrix that an adapter may change; an adapter takes as many as its rank needs, whatever it changes, and what it does not
change is zeros there. An adapter is copied into its pages in the order of launches: steps that run are not disturbed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from axon.engine.cuda.adapters.adapter_rows import MOST_PAGES
from axon.engine.cuda.weights.layers import head_order
from axon.engine.load.adapter import AdapterWeights, Pair, read_adapter
from axon.engine.load.architecture import Architecture
from axon.errors import Misconfigured

RANK = 16
"""Ranks of a page."""
MOST_RANK = RANK * MOST_PAGES


@dataclass(frozen=True, slots=True)
class Place:
    """Where a product of a layer has its matrices in a page, and their sizes."""

    modules: tuple[str, ...]
    num_inputs: int
    ends: tuple[int, ...]
    """Where the outputs of each module end."""
    first: int
    """Where a page has the first matrices [module, rank, input]."""
    second: int
    """Where it has the second ones [output, rank]."""

    @property
    def end(self) -> int:
        return self.second + self.ends[-1] * RANK


Places = Mapping[tuple[int, str], Place]
_Product = tuple[tuple[str, ...], int, tuple[int, ...]]
"""The modules of a product, its inputs, and the outputs of each module."""


def places_of(architecture: Architecture) -> tuple[Places, int]:
    """The places of all products that adapters may change, by layer and name, and the numbers of a page. Pure."""
    places: dict[tuple[int, str], Place] = {}
    end = 0
    for layer in range(architecture.num_layers):
        for product, (modules, num_inputs, sizes) in _products(architecture, layer).items():
            ends = tuple(sum(sizes[: index + 1]) for index in range(len(sizes)))
            second = end + len(modules) * RANK * num_inputs
            places[layer, product] = place = Place(modules, num_inputs, ends, end, second)
            end = place.end
    return places, end


def num_pages(architecture: Architecture, dtype: torch.dtype, *, slots: int, most_bytes: int) -> int:
    """Pages for so many adapters that take so many bytes at most. Pure."""
    return max(0, min(slots * MOST_PAGES, most_bytes // (places_of(architecture)[1] * dtype.itemsize)))


class CudaAdapters:
    """The adapters in a GPU's memory, by the digests that spans name."""

    def __init__(self, architecture: Architecture, dtype: torch.dtype, device: torch.device, *, count: int) -> None:
        self._architecture = architecture
        self.places, self.page_size = places_of(architecture)
        self.pool = torch.zeros(count, self.page_size, dtype=dtype, device=device)
        self._free = list(range(count))
        self.pages: dict[str, tuple[int, ...]] = {}
        """The pages of each adapter that is held."""

    @torch.inference_mode()
    def read(self, folder: Path) -> tuple[torch.Tensor, int]:
        """An adapter's pages in the host's memory, and their bytes; raises ``Misconfigured``."""
        weights = read_adapter(folder, self._architecture)
        rank = max((len(pair.down) for layer in weights.layers for pair in layer.values()), default=1)
        if rank > MOST_RANK:
            raise Misconfigured(f"it has rank {rank}, and a GPU computes adapters up to rank {MOST_RANK}")
        pages = torch.zeros(-(-rank // RANK), self.page_size)
        order = head_order(self._architecture)
        for (layer, _), place in self.places.items():
            _fill(pages, place, weights, layer, order)
        packed = pages.to(self.pool.dtype)
        return packed, packed.nbytes

    @torch.inference_mode()
    def hold(self, digest: str, adapter: torch.Tensor) -> None:
        """Copies it into free pages, behind the steps that were launched."""
        own = tuple(self._free.pop() for _ in range(len(adapter)))
        for page, numbers in zip(own, adapter, strict=True):
            self.pool[page].copy_(numbers)
        self.pages[digest] = own

    def drop(self, digest: str) -> None:
        """Frees its pages."""
        self._free.extend(self.pages.pop(digest, ()))


def _products(architecture: Architecture, layer: int) -> dict[str, _Product]:
    """Modules, inputs and outputs of each product of a layer; of a mixture of experts, adapters change no expert."""
    hidden, inner = architecture.hidden_size, architecture.intermediate_size
    heads, kv_heads = (count * architecture.head_dim for count in (architecture.num_heads, architecture.num_kv_heads))
    products: dict[str, _Product] = {
        "qkv": (("q", "k", "v"), hidden, (heads, kv_heads, kv_heads)),
        "output": (("o",), heads, (hidden,)),
    }
    if architecture.experts_of(layer) is None:
        products |= {"gate_up": (("gate", "up"), hidden, (inner, inner)), "down": (("down",), inner, (hidden,))}
    return products


def _fill(pages: torch.Tensor, place: Place, weights: AdapterWeights, layer: int, order: torch.Tensor | None) -> None:
    """Writes an adapter's matrices of one product into its pages; ``order``: of the dimensions of a head."""
    first = pages[:, place.first : place.second].view(len(pages), len(place.modules), RANK, place.num_inputs)
    second = pages[:, place.second : place.end].view(len(pages), place.ends[-1], RANK)
    for index, module in enumerate(place.modules):
        pair = weights.layers[layer].get(module)
        if pair is None:
            continue
        down, up = torch.tensor(pair.down), _ordered(pair, module, order)
        start = place.ends[index - 1] if index else 0
        for page in range(-(-len(down) // RANK)):
            ranks = slice(page * RANK, min((page + 1) * RANK, len(down)))
            first[page, index, : ranks.stop - ranks.start] = down[ranks]
            second[page, start : place.ends[index], : ranks.stop - ranks.start] = up[:, ranks]


def _ordered(pair: Pair, module: str, order: torch.Tensor | None) -> torch.Tensor:
    up = torch.tensor(pair.up)
    if order is None or module not in ("q", "k"):
        return up
    return up.view(-1, len(order), up.shape[1])[:, order].reshape(up.shape)
