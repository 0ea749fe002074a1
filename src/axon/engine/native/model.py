"""A model in native memory: mapped weights, KV blocks, threads. Knows no scheduler and no sampling."""

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from axon.engine.load.architecture import Architecture
from axon.engine.load.rope import Rope
from axon.engine.native import library
from axon.engine.native.packed_file import PackedFile
from axon.errors import Misconfigured

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]

VECTORS = (
    "input_norm",
    "mlp_norm",
    "query_norm",
    "key_norm",
    "router",
    "router_bias",
    "attention_post",
    "mlp_post",
    "sinks",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """One step as arrays: spans of consecutive tokens, in order."""

    tokens: Ints
    positions: Ints
    span_starts: Ints
    """First row of each span, and the number of rows at the end: [spans + 1]."""
    block_ids: Ints
    """Block tables of all spans, each from position 0 on, concatenated."""
    table_starts: Ints
    """Start of each span's table in ``block_ids``, and its length at the end: [spans + 1]."""
    outputs: Ints
    """The rows that have a draw."""
    adapters: npt.NDArray[np.uint64] | None = None
    """Handle of each row's adapter, 0 for none; None where no row has one."""


class Closes(Protocol):
    """Something that is closed together with a model."""

    def close(self) -> None:
        """Frees its memory."""
        ...


class NativeModel:
    """Owns a model's native memory until ``close``."""

    def __init__(
        self,
        architecture: Architecture,
        packed: PackedFile,
        *,
        num_blocks: int,
        threads: int,
        max_model_len: int,
        instruction_set: str = "",
        build_folder: Path | None = None,
        head_bytes: int = 0,
    ) -> None:
        """``head_bytes``: of each KV block, for a draft head; see ``axon.engine.native.draft_head``."""
        refuse_unsupported(architecture)
        self._library = library.load(build_folder)
        self._vocab_size, self._num_blocks = architecture.vocab_size, num_blocks
        shape = shape_of(architecture, head_bytes)
        handle = self._library.axon_create(ctypes.byref(shape), num_blocks, threads, instruction_set.encode())
        if handle is None:
            raise Misconfigured(f"no memory for {num_blocks} KV blocks, or no instruction set {instruction_set!r} here")
        self._handle: int | None = handle
        self._head: Closes | None = None
        self._kept: list[npt.NDArray[Any]] = []
        self._set_weights(architecture, packed)
        self._set_positions(architecture, max_model_len)

    def step(self, rows: Rows, logits: Floats | None = None) -> Ints:
        """Computes the rows; returns the argmax of each output row, and fills ``logits`` if given."""
        best = np.empty(len(rows.outputs), np.int32)
        assert self._handle is not None, "closed"
        assert logits is None or (logits.dtype == np.float32 and logits.shape == (len(best), self._vocab_size))
        result = self._library.axon_step(
            self._handle,
            library.address(rows.tokens),
            library.address(rows.positions),
            len(rows.tokens),
            library.address(rows.span_starts),
            len(rows.span_starts) - 1,
            library.address(rows.block_ids),
            library.address(rows.table_starts),
            library.address(rows.outputs),
            len(best),
            library.address(logits),
            library.address(best),
            library.address(rows.adapters),
        )
        if result != 0:
            raise MemoryError(f"no memory for a step of {len(rows.tokens)} tokens")
        return best

    @property
    def handle(self) -> int:
        """The native model, for its adapters and its head."""
        assert self._handle is not None, "closed"
        return self._handle

    @property
    def blocks(self) -> Bytes:
        """The memory of the KV blocks, [block, byte]; it ends with the model."""
        assert self._handle is not None, "closed"
        num_bytes = self._library.axon_block_bytes(self._handle)
        address = self._library.axon_blocks(self._handle)
        memory = (ctypes.c_uint8 * (num_bytes * self._num_blocks)).from_address(address)
        return np.frombuffer(memory, np.uint8).reshape(self._num_blocks, num_bytes)

    @property
    def team(self) -> int:
        """The handle of the model's threads, which end with it."""
        assert self._handle is not None, "closed"
        team: int = self._library.axon_team(self._handle)
        return team

    def attach(self, head: Closes) -> None:
        """From now on its steps serve a draft head, which is closed with it."""
        self._head = head

    def close(self) -> None:
        """Ends the threads and frees the memory; a second call does nothing."""
        if self._head is not None:
            self._head.close()
        if self._handle is not None:
            self._library.axon_destroy(self._handle)
            self._handle = None

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()

    def _set_weights(self, architecture: Architecture, packed: PackedFile) -> None:
        self._set_linear(packed, -1, 0, "embedding")
        self._set_linear(packed, -1, 1, "embedding" if architecture.tied_embedding else "head")
        self._set_vector(-1, 0, packed["norm"])
        for layer in range(architecture.num_layers):
            for which, name in enumerate(_linears_of(architecture, layer)):
                if name:
                    self._set_linear(packed, layer, which, f"{layer}.{name}")
            for which, name in enumerate(VECTORS):
                if f"{layer}.{name}" in packed:
                    self._set_vector(layer, which, packed[f"{layer}.{name}"])

    def _set_positions(self, architecture: Architecture, max_model_len: int) -> None:
        """Gives each layer its cosines and sines, which layers of one rope share, and its window."""
        ropes = [architecture.rope_of(layer) for layer in range(architecture.num_layers)]
        tables = {rope: rope_table(rope, architecture.head_dim, max_model_len) for rope in set(ropes)}
        for layer, rope in enumerate(ropes):
            for which, table in enumerate(tables[rope]):
                self._set_vector(layer, len(VECTORS) + which, table)
            self._library.axon_set_window(self._handle, layer, architecture.window_of(layer))

    def _set_linear(self, packed: PackedFile, layer: int, which: int, name: str) -> None:
        panels, scales = packed[f"{name}.panels"], packed[f"{name}.scales"]
        self._kept += [panels, scales]
        self._library.axon_set_linear(
            self._handle,
            layer,
            which,
            library.address(panels),
            library.address(scales),
            panels.shape[0],
            panels.shape[1] * 4,
        )
        if f"{name}.bias" in packed:
            bias = packed[f"{name}.bias"]
            self._kept.append(bias)
            self._library.axon_set_bias(self._handle, layer, which, library.address(bias))

    def _set_vector(self, layer: int, which: int, values: npt.NDArray[Any]) -> None:
        assert values.dtype == np.float32
        self._kept.append(values)
        self._library.axon_set_vector(self._handle, layer, which, library.address(values))


def shape_of(architecture: Architecture, head_bytes: int = 0) -> library.Shape:
    """A model's sizes as the kernels take them."""
    experts = architecture.experts
    return library.Shape(
        vocab=architecture.vocab_size,
        hidden=architecture.hidden_size,
        intermediate=architecture.intermediate_size,
        layers=architecture.num_layers,
        heads=architecture.num_heads,
        kv_heads=architecture.num_kv_heads,
        head_dim=architecture.head_dim,
        norm_epsilon=architecture.rms_norm_eps,
        query_scale=architecture.query_scale,
        embedding_scale=architecture.embedding_scale,
        rotary=architecture.rope.rotary_dim(architecture.head_dim),
        activation=library.ACTIVATIONS.index(architecture.family.activation),
        experts=experts.count if experts else 0,
        experts_per_token=experts.per_token if experts else 0,
        expert_intermediate=experts.inner_size if experts else 0,
        normalises_experts=bool(experts and experts.normalises),
        gate_limit=experts.limit if experts else 0.0,
        gate_slope=experts.slope if experts else 1.0,
        head_bytes=head_bytes,
    )


def _linears_of(architecture: Architecture, layer: int) -> list[str]:
    """The products of a layer in the kernels' order; empty where it has none of a kind."""
    experts = architecture.experts_of(layer)
    if experts is None:
        return ["qkv", "output", "gate_up", "down"]
    each = [f"experts.{index}.{name}" for index in range(experts.count) for name in ("gate_up", "down")]
    return ["qkv", "output", "", "", *each]


def refuse_unsupported(architecture: Architecture) -> None:
    """Raises Misconfigured for shapes that the kernels do not support."""
    if architecture.experts and architecture.experts.count > library.MAX_EXPERTS:
        raise Misconfigured(f"the native kernels have {library.MAX_EXPERTS} experts in a layer at most")
    if architecture.head_dim % 2 or architecture.head_dim > library.MAX_HEAD_DIM:
        raise Misconfigured(f"the native kernels have no heads of {architecture.head_dim} dimensions")
    if architecture.group_size > library.MAX_SHARE:
        raise Misconfigured(f"the native kernels share a KV head among {library.MAX_SHARE} heads at most")


def block_bytes(architecture: Architecture) -> int:
    """Bytes of one KV block over all layers: int8 keys and values, a float scale for each token and head."""
    dim = -(-architecture.head_dim // library.LANES) * library.LANES
    per_token = 2 * architecture.num_layers * architecture.num_kv_heads * (dim + 4)
    return per_token * library.BLOCK_SIZE


def rope_table(rope: Rope, head_dim: int, max_model_len: int) -> tuple[Floats, Floats]:
    """Cosines and sines of the rotary embedding, [position, pair of dimensions] each."""
    angles = np.outer(np.arange(max_model_len), np.array(rope.frequencies(head_dim)))
    cos, sin = (rope.scale * each(angles) for each in (np.cos, np.sin))
    return cos.astype(np.float32), sin.astype(np.float32)
