"""LoRA adapters for the native kernels: their matrices in float, laid out by panels. Knows no sequences.

The base product stays in int8. An adapter's first product takes the input as that product sees it, rounded to int8; its
own numbers are never rounded.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from axon.engine.batch import Batch
from axon.engine.load.adapter import AdapterWeights, Pair, read_adapter
from axon.engine.load.architecture import Architecture
from axon.engine.native import library
from axon.engine.native.build import GROUP_SIZE
from axon.engine.native.library import LANES
from axon.engine.native.model import NativeModel

Floats = npt.NDArray[np.float32]
Handles = npt.NDArray[np.uint64]
_SLICE = np.dtype([("first", np.int32), ("count", np.int32), ("offset", np.int64)])
"""As model.h has it."""
_Layout = dict[str, npt.NDArray[np.int64]]
"""The padded output of a product at which each output of a module stands."""


class NativeAdapter:
    """One adapter in native memory, until it is forgotten."""

    def __init__(self, model: NativeModel, weights: AdapterWeights, layouts: list[tuple[int, _Layout]]) -> None:
        """``layouts`` has, for each product, its padded outputs and where its modules' outputs stand among them."""
        self._library = library.load()
        handle = self._library.axon_create_adapter(model.handle)
        if handle is None:
            raise MemoryError("no memory for an adapter")
        self.handle: int = handle
        self._kept: list[npt.NDArray[np.generic]] = []
        self.num_bytes = 0
        for index, layer in enumerate(weights.layers):
            for which, (num_outputs, layout) in enumerate(layouts):
                if pairs := {module: layer[module] for module in layout if module in layer}:
                    self._set(index, which, pairs, num_outputs, layout)

    def _set(self, index: int, which: int, pairs: Mapping[str, Pair], num_outputs: int, layout: _Layout) -> None:
        down = _first_product([pair.down for pair in pairs.values()])
        up, slices = _second_product(pairs, num_outputs, layout)
        self._kept += [down, up, slices]
        self.num_bytes += down.nbytes + up.nbytes + slices.nbytes
        self._library.axon_set_low_rank(
            self.handle,
            index,
            which,
            library.address(down),
            library.address(up),
            library.address(slices),
            down.shape[0],
            down.shape[1],
        )

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self._library.axon_destroy_adapter(self.handle)


class NativeAdapters:
    """The adapters that a native model's steps may ask for."""

    def __init__(self, model: NativeModel, architecture: Architecture) -> None:
        self._model, self._architecture = model, architecture
        self._layouts = _layouts(architecture)
        self._held: dict[str, NativeAdapter] = {}

    def read(self, folder: Path) -> tuple[NativeAdapter, int]:
        """Reads an adapter's folder; raises ``Misconfigured``."""
        adapter = NativeAdapter(self._model, read_adapter(folder, self._architecture), self._layouts)
        return adapter, adapter.num_bytes

    def hold(self, digest: str, adapter: NativeAdapter) -> None:
        """From now on steps may ask for it."""
        self._held[digest] = adapter

    def drop(self, digest: str) -> None:
        """No step will ask for it any more."""
        self._held.pop(digest, None)

    def handles(self, batch: Batch) -> Handles | None:
        """The handle of each row's adapter, 0 for none; None where no row has one."""
        if not any(span.adapter for span in batch.spans):
            return None
        spans = [(self._held[span.adapter].handle if span.adapter else 0, span) for span in batch.spans]
        return np.array([handle for handle, span in spans for _ in span.token_ids], np.uint64)


def _layouts(architecture: Architecture) -> list[tuple[int, _Layout]]:
    """For each product its padded number of outputs, and where its modules' outputs stand."""
    heads, kv_heads = (count * architecture.head_dim for count in (architecture.num_heads, architecture.num_kv_heads))
    hidden, inner = architecture.hidden_size, architecture.intermediate_size
    turns = np.arange(inner) // LANES * 2 * LANES + np.arange(inner) % LANES  # gate and up take turns, 16 outputs each
    starts = {"q": (0, heads), "k": (heads, kv_heads), "v": (heads + kv_heads, kv_heads)}
    qkv = {module: np.arange(start, start + size) for module, (start, size) in starts.items()}
    return [
        (_padded(heads + 2 * kv_heads, LANES), qkv),
        (_padded(hidden, LANES), {"o": np.arange(hidden)}),
        (2 * _padded(inner, GROUP_SIZE), {"gate": turns, "up": turns + LANES}),
        (_padded(hidden, LANES), {"down": np.arange(hidden)}),
    ]


def _first_product(downs: list[Floats]) -> Floats:
    """The first products side by side, [input, rank], the rank padded to whole vectors."""
    stacked = np.concatenate(downs)
    padded = np.zeros((stacked.shape[1], _padded(len(stacked), LANES)), np.float32)
    padded[:, : len(stacked)] = stacked.T
    return padded


def _second_product(
    pairs: Mapping[str, Pair], num_outputs: int, layout: _Layout
) -> tuple[Floats, npt.NDArray[np.void]]:
    """The second products panel by panel, and where each panel finds its own.

    A panel takes all modules that have outputs in it; for outputs of another of them, their numbers are zeros.
    """
    rank = sum(len(pair.down) for pair in pairs.values())
    spread = np.zeros((rank, num_outputs), np.float32)
    ends: dict[int, list[int]] = {}
    first = 0
    for module, pair in pairs.items():
        end = first + len(pair.down)
        spread[first:end, layout[module]] = pair.up.T
        for panel in np.unique(layout[module] // LANES).tolist():
            ends.setdefault(panel, []).extend((first, end))
        first = end
    slices = np.zeros(num_outputs // LANES, _SLICE)
    pieces: list[Floats] = []
    offset = 0
    for panel, edges in sorted(ends.items()):
        piece = np.ascontiguousarray(spread[min(edges) : max(edges), panel * LANES : (panel + 1) * LANES])
        slices[panel] = (min(edges), len(piece), offset)
        offset += piece.size
        pieces.append(piece.reshape(-1))
    return np.concatenate(pieces), slices


def _padded(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple
