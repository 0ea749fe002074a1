"""Attention of a model's layers: launches its kernels with the shapes and tables of each layer. Holds no weights."""

from typing import Any

import torch

from axon.engine.cuda import tuning
from axon.engine.cuda.attention.chunk_attention import chunk_attention
from axon.engine.cuda.attention.decode_attention import decode_attention
from axon.engine.cuda.attention.rope import rope_write
from axon.engine.cuda.attention.run_attention import run_attention
from axon.engine.cuda.jit import ceil_pow2, launch
from axon.engine.cuda.memory.kv_memory import KVBlocks
from axon.engine.cuda.memory.scratch import Scratch
from axon.engine.cuda.rows import Parts
from axon.engine.cuda.weights.layers import Layer, rope_table
from axon.engine.load.architecture import Architecture


class Attending:
    """The rotary tables, and the attention of decodes and of prompt chunks."""

    def __init__(
        self, architecture: Architecture, scratch: Scratch, max_model_len: int, device: torch.device, *, is_exact: bool
    ) -> None:
        self._architecture, self._scratch, self._is_exact = architecture, scratch, is_exact
        self._precision = "ieee" if is_exact else "tf32"
        ropes = [architecture.rope_of(index) for index in range(architecture.num_layers)]
        made = {rope: rope_table(architecture, rope, max_model_len, device) for rope in dict.fromkeys(ropes)}
        self.tables = [made[rope] for rope in ropes]
        """Cosines and sines of each layer."""

    def decode(
        self,
        index: int,
        layer: Layer,
        qkv: Parts,
        positions: torch.Tensor,
        slots: torch.Tensor,
        num_rows: int,
        seen: torch.Tensor,
        kv: KVBlocks,
        *,
        pdl: bool,
    ) -> None:
        model, scratch = self._architecture, self._scratch
        shape = self._decode_shape(num_rows, kv.block_size)
        described = shape.described and kv.described
        decode_attention[(model.num_kv_heads, num_rows, shape.num_splits)](
            qkv.tensor, qkv.stride, *qkv.scales, *self._head_weights(layer), *self.tables[index], positions, slots,
            kv.tables, kv.table_width, kv.descriptor if described else kv.tensor, kv.tensor, kv.layer_row(index), seen,
            scratch.seen_largest, scratch.part_sums, scratch.part_logs, scratch.arrivals,
            model.query_scale, model.rms_norm_eps, NUM_HEADS=model.num_heads, NUM_KV_HEADS=model.num_kv_heads,
            GROUP_WIDTH=max(16, ceil_pow2(model.group_size)), DIM=model.head_dim, DIM_WIDTH=_dim_width(model),
            BLOCK_SIZE=kv.block_size, BLOCK_ROWS=kv.block_rows, TILE=shape.tile, NUM_SPLITS=shape.num_splits,
            NUM_PARTS=qkv.count, BIAS=model.qkv_bias, NORM=model.qk_norm, SCALED=qkv.is_scaled,
            STAGES=shape.stages, EARLY=shape.early, DESCRIBED=described, PRECISION=self._precision, PDL=pdl,
            WINDOW=model.window_of(index), sinks=layer.sinks,
            **launch(num_warps=shape.num_warps, pdl=pdl),
        )  # fmt: skip

    def chunks(
        self,
        index: int,
        layer: Layer,
        qkv: Parts,
        inputs: dict[str, torch.Tensor],
        first: int,
        seen: torch.Tensor,
        kv: KVBlocks,
    ) -> None:
        """Rotates, stores and attends for the prompt chunks: the rows from ``first`` on."""
        model, common = self._architecture, self._common(kv)
        self._rotate(index, layer, qkv, inputs, first, kv)
        shape = self.chunk_shape(kv.block_size)
        described = kv.described and shape.tile == kv.block_size
        chunk_attention[(model.num_heads, len(inputs["tiles"]))](
            qkv.tensor, kv.descriptor if described else kv.tensor, kv.tensor, kv.layer_row(index), kv.tables,
            kv.table_width, inputs["tiles"], seen, model.query_scale,
            DIM_WIDTH=_dim_width(model), QUERIES=shape.queries, TILE=shape.tile, STAGES=shape.stages,
            DESCRIBED=described, PRECISION=self._precision, WINDOW=model.window_of(index), sinks=layer.sinks,
            **common, **launch(num_warps=shape.num_warps),
        )  # fmt: skip

    def runs(
        self, index: int, layer: Layer, qkv: Parts, inputs: dict[str, torch.Tensor], seen: torch.Tensor, kv: KVBlocks
    ) -> None:
        """Rotates, stores and attends for short runs of rows; none has more tiles than rows."""
        model, scratch = self._architecture, self._scratch
        self._rotate(index, layer, qkv, inputs, 0, kv)
        shape = self.run_shape(len(seen), kv.block_size)
        run_attention[(model.num_kv_heads, len(inputs["tiles"]), shape.num_splits)](
            qkv.tensor, kv.tensor, kv.layer_row(index), kv.tables, kv.table_width, inputs["tiles"], seen,
            scratch.run_sums, scratch.run_logs, scratch.arrivals, model.query_scale,
            WIDTH=shape.width, DIM_WIDTH=_dim_width(model), TILE=shape.tile, NUM_SPLITS=shape.num_splits,
            STAGES=shape.stages, PRECISION=self._precision, WINDOW=model.window_of(index), sinks=layer.sinks,
            **self._common(kv), **launch(num_warps=shape.num_warps),
        )  # fmt: skip

    def _common(self, kv: KVBlocks) -> dict[str, Any]:
        model = self._architecture
        return {
            "NUM_HEADS": model.num_heads,
            "NUM_KV_HEADS": model.num_kv_heads,
            "DIM": model.head_dim,
            "BLOCK_SIZE": kv.block_size,
            "BLOCK_ROWS": kv.block_rows,
        }

    def _rotate(
        self, index: int, layer: Layer, qkv: Parts, inputs: dict[str, torch.Tensor], first: int, kv: KVBlocks
    ) -> None:
        """Rotates the rows from ``first`` on, and writes their keys and values."""
        model, rows, (row_scales, output_scales) = self._architecture, qkv.tensor, qkv.scales
        rope_write[(len(rows) - first,)](
            rows[first:], row_scales[first:], output_scales, *self._head_weights(layer), *self.tables[index],
            inputs["positions"][first:], inputs["slots"][first:], kv.tables, kv.table_width, kv.tensor,
            kv.layer_row(index), model.rms_norm_eps,
            HEADS_WIDTH=ceil_pow2(model.num_heads), KV_HEADS_WIDTH=ceil_pow2(model.num_kv_heads),
            HALF_WIDTH=ceil_pow2(model.head_dim // 2), BIAS=model.qkv_bias, NORM=model.qk_norm,
            SCALED=qkv.is_scaled, **self._common(kv), **launch(num_warps=4),
        )  # fmt: skip

    def _head_weights(self, layer: Layer) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Bias and head norms; where a model has none, any tensor stands in, which the kernel does not read."""
        bias, query_norm, key_norm = layer.bias, layer.query_norm, layer.key_norm
        none = layer.input_norm
        return (
            none if bias is None else bias,
            none if query_norm is None else query_norm,
            none if key_norm is None else key_norm,
        )

    def _decode_shape(self, num_rows: int, block_size: int) -> tuning.DecodeShape:
        dim = self._architecture.head_dim
        return tuning.decode_shape(num_rows, block_size, is_exact=self._is_exact, dim=dim)

    def run_shape(self, num_rows: int, block_size: int) -> tuning.RunShape:
        """The shape of the programs for short runs."""
        model = self._architecture
        return tuning.run_shape(num_rows, block_size, model.group_size, is_exact=self._is_exact, dim=model.head_dim)

    def chunk_shape(self, block_size: int) -> tuning.ChunkShape:
        """The shape of the programs for prompt chunks."""
        return tuning.chunk_shape(block_size, is_exact=self._is_exact, dim=self._architecture.head_dim)


def _dim_width(model: Architecture) -> int:
    return max(16, ceil_pow2(model.head_dim))
