"""A draft head in native memory, beside its target: packed weights, and drafts for several streams at once.

The head has the threads of its target, and its keys, values and rows stand in the target's KV blocks, behind the
target's own: what copies, shares or frees a block does so for both.
"""

import ctypes
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from axon.engine.load.architecture import Architecture
from axon.engine.load.draft_head import NUM_FEATURES, DraftHead
from axon.engine.native import library
from axon.engine.native.build import GROUP_SIZE
from axon.engine.native.model import VECTORS, Floats, Ints, NativeModel, Rows, block_bytes, rope_table, shape_of
from axon.engine.native.packed_file import PackedFile
from axon.engine.native.packed_weights import interleave, pad_vector, quantise
from axon.errors import Misconfigured

_LAYER_VECTORS = {0: "layer.hidden_norm.weight", 1: "layer.post_attention_layernorm.weight"}
_COS, _SIN = len(VECTORS), len(VECTORS) + 1


@dataclass(frozen=True, slots=True)
class Guesses:
    """The drafts of a head for each span, and the rows and seconds of its rounds."""

    drafts: list[list[int]]
    rounds: list[tuple[int, float]]


class NativeHead:
    """Owns a head's native memory; its target closes it."""

    def __init__(
        self,
        model: NativeModel,
        packed: PackedFile,
        target: Architecture,
        head: DraftHead,
        *,
        max_model_len: int,
        instruction_set: str = "",
    ) -> None:
        """``model`` was created with ``head_bytes``; ``packed`` are its weights."""
        self._library = library.load()
        self._kept: list[npt.NDArray[np.generic]] = []
        self._ids: Ints = head.ids.astype(np.int32)
        shape = shape_of(replace(head.architecture, vocab_size=len(head.ids)))
        layers = np.array(head.layers, np.int32)
        handle = self._library.axon_create_head(
            ctypes.byref(shape), model.handle, library.address(layers), instruction_set.encode()
        )
        if handle is None:
            raise Misconfigured(f"no memory for the draft head at {head.folder}")
        self._handle: int | None = handle
        self._set_weights(model, packed, target, head, max_model_len)
        model.attach(self)

    def draft(
        self, rows: Rows, num_drafts: Ints, *, inverse_temperatures: Floats, least: Floats, going: Floats
    ) -> Guesses:
        """Computes the rows, and drafts so many tokens behind each span: the likeliest one by one, as long as they are
        right together with a probability of ``least``; it guesses on behind those that are so with ``going``."""
        assert self._handle is not None, "closed"
        most, num_spans = max(1, int(num_drafts.max())), len(num_drafts)
        drafts, counts = np.empty((num_spans, most), np.int32), np.empty(num_spans, np.int32)
        num_rows, seconds = np.empty(most, np.int32), np.empty(most, np.float64)
        num_rounds = self._library.axon_draft(
            self._handle,
            library.address(rows.tokens),
            library.address(rows.positions),
            len(rows.tokens),
            library.address(rows.span_starts),
            num_spans,
            library.address(rows.block_ids),
            library.address(rows.table_starts),
            library.address(num_drafts),
            library.address(inverse_temperatures),
            library.address(least),
            library.address(going),
            library.address(self._ids),
            most,
            library.address(drafts),
            library.address(counts),
            library.address(num_rows),
            library.address(seconds),
        )
        if num_rounds < 0:
            raise MemoryError(f"no memory for drafts behind {len(rows.tokens)} tokens")
        found = [each[:count] for each, count in zip(drafts.tolist(), counts.tolist(), strict=True)]
        return Guesses(found, list(zip(num_rows.tolist(), seconds.tolist(), strict=True))[:num_rounds])

    def close(self) -> None:
        """Frees the memory; a second call does nothing."""
        if self._handle is not None:
            self._library.axon_destroy(self._handle)
            self._handle = None

    def _set_weights(
        self, model: NativeModel, packed: PackedFile, target: Architecture, head: DraftHead, max_model_len: int
    ) -> None:
        take = head.take
        attention = [take(f"layer.self_attn.{name}_proj.weight") for name in "qkv"]
        gate, up = (take(f"layer.mlp.{side}_proj.weight") for side in ("gate", "up"))
        ours = self._handle
        self._set_linear(model.handle, -1, 2, *quantise(_padded_parts(take("fc.weight"), NUM_FEATURES), GROUP_SIZE))
        self._set_linear(ours, 0, 0, *quantise(_padded_parts(np.concatenate(attention), 2), GROUP_SIZE))
        self._set_linear(ours, 0, 1, *quantise(take("layer.self_attn.o_proj.weight"), GROUP_SIZE))
        self._set_linear(ours, 0, 2, *quantise(interleave(gate, up, GROUP_SIZE), GROUP_SIZE))
        self._set_linear(ours, 0, 3, *quantise(take("layer.mlp.down_proj.weight"), GROUP_SIZE))
        theirs = packed["embedding.panels"], packed["embedding.scales"]
        self._set_linear(
            ours, -1, 0, *(quantise(take("embed_tokens.weight"), GROUP_SIZE) if head.has_embedding else theirs)
        )
        if head.has_output:
            self._set_linear(ours, -1, 1, *quantise(take("lm_head.weight"), GROUP_SIZE))
        else:
            name = "embedding" if target.tied_embedding else "head"
            rows = rows_of(packed[f"{name}.panels"], head.ids), rows_of(packed[f"{name}.scales"], head.ids)
            self._set_linear(ours, -1, 1, *rows)
        self._set_vector(-1, 0, pad_vector(take("norm.weight"), GROUP_SIZE))
        self._set_vector(-1, 1, pad_vector(take("layer.input_layernorm.weight"), GROUP_SIZE))
        for which, name in _LAYER_VECTORS.items():
            self._set_vector(0, which, pad_vector(take(name), GROUP_SIZE))
        cos, sin = rope_table(head.architecture.rope, head.architecture.head_dim, max_model_len)
        self._set_vector(0, _COS, cos)
        self._set_vector(0, _SIN, sin)

    def _set_linear(
        self,
        handle: int | None,
        layer: int,
        which: int,
        panels: npt.NDArray[np.generic],
        scales: npt.NDArray[np.generic],
    ) -> None:
        self._kept += [panels, scales]
        addresses = library.address(panels), library.address(scales)
        self._library.axon_set_linear(handle, layer, which, *addresses, panels.shape[0], panels.shape[1] * 4)

    def _set_vector(self, layer: int, which: int, values: Floats) -> None:
        self._kept.append(values)
        self._library.axon_set_vector(self._handle, layer, which, library.address(values))


def head_bytes(head: Architecture) -> int:
    """Bytes that a head takes of each KV block: its keys and values, and a row of 16-bit numbers for each token."""
    hidden = -(-head.hidden_size // GROUP_SIZE) * GROUP_SIZE
    return block_bytes(head) + 2 * hidden * library.BLOCK_SIZE


def rows_of(panels: npt.NDArray[np.generic], ids: npt.NDArray[np.int64]) -> npt.NDArray[np.generic]:
    """Some outputs of packed panels or of their scales, [output / 16, …, 16, …], packed in the order of ``ids``."""
    lanes = library.LANES
    padded = np.pad(ids, (0, -len(ids) % lanes))
    rows = panels.swapaxes(1, 2)[padded // lanes, padded % lanes]
    rows[len(ids) :] = 0
    return np.ascontiguousarray(rows.reshape(-1, lanes, *rows.shape[1:]).swapaxes(1, 2))


def _padded_parts(weight: Floats, count: int) -> Floats:
    """[output, inputs of so many parts] with each part's inputs padded to whole groups."""
    parts = weight.reshape(len(weight), count, -1)
    return np.pad(parts, ((0, 0), (0, 0), (0, -parts.shape[2] % GROUP_SIZE))).reshape(len(weight), -1)
