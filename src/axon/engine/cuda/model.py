"""Llama and its relatives on a GPU: a step of decodes, which a CUDA graph can hold, and a step with prompt chunks.

Knows no sequences and no sampling.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional
from triton.tools.tensor_descriptor import TensorDescriptor

from axon.engine.cuda import tuning
from axon.engine.cuda.chunk_attention import chunk_attention
from axon.engine.cuda.decode_attention import decode_attention
from axon.engine.cuda.jit import ceil_pow2, launch, overlaps
from axon.engine.cuda.kv_memory import KVBlocks
from axon.engine.cuda.layers import Layer, Source, load_layer, rope_table
from axon.engine.cuda.product_kernels import few_rows, one_row
from axon.engine.cuda.rope import rope_write
from axon.engine.cuda.row_kernels import add_norm, embed_norm, gate
from axon.engine.cuda.scratch import Scratch
from axon.engine.load.architecture import Architecture
from axon.engine.parallel.group import Alone, Group

_GATE_WIDTH = 1024


@dataclass(frozen=True, slots=True)
class Parts:
    """A matrix product as partial sums, which the kernel that reads it adds up."""

    tensor: torch.Tensor
    count: int = 1
    stride: int = 0
    """Elements from one partial sum to the next."""


class CudaLlama:
    """Weights, rotary tables and the buffers of decodes; each rank of a group holds a part of every layer."""

    def __init__(
        self,
        architecture: Architecture,
        weights: Source,
        device: torch.device,
        *,
        max_model_len: int,
        max_rows: int,
        group: Group | None = None,
    ) -> None:
        self.architecture = architecture
        self.device = device
        self.group = group or Alone()
        self._embedding = weights.take("model.embed_tokens.weight").to(device)
        self.dtype = self._embedding.dtype
        self._layers = [load_layer(architecture, weights, index, device) for index in range(architecture.num_layers)]
        self._norm = weights.take("model.norm.weight").to(device)
        self._head = self._embedding if architecture.tied_embedding else weights.take("lm_head.weight").to(device)
        self._cos, self._sin = rope_table(architecture, max_model_len, device)
        self._pdl = overlaps(device)
        self._is_exact = self.dtype == torch.float32
        self._precision = "ieee" if self._is_exact else "tf32"
        self._scratch = Scratch(architecture, max_rows, self.dtype, device)

    def decode(
        self, inputs: dict[str, torch.Tensor], num_rows: int, sampled: torch.Tensor, kv: KVBlocks
    ) -> torch.Tensor:
        """Computes one token of each sequence and returns their logits; enters new blocks into the block tables."""
        if num_rows == 1 and self._takes_one_row():
            return self._decode_one(inputs, sampled, kv)
        scratch, pdl = self._scratch, self._pdl
        residual, normed = scratch.residual[:num_rows], scratch.normed[:num_rows]
        seen, gated = scratch.seen[:num_rows], scratch.gated[:num_rows]
        self._embed(inputs, num_rows, sampled, residual, normed, kv, update=True, pdl=pdl)
        for index, layer in enumerate(self._layers):
            qkv = self._product("qkv", normed, layer.qkv)
            self._decode_attention(index, layer, qkv, inputs["positions"], inputs["slots"], num_rows, seen, kv, pdl=pdl)
            output = self._summed("output", seen, layer.output)
            self._add_norm(output, residual, layer.mlp_norm, normed, pdl=pdl)
            gate_up = self._product("gate_up", normed, layer.gate_up)
            self._gate(gate_up, gated, pdl=pdl)
            down = self._summed("down", gated, layer.down)
            self._add_norm(down, residual, self._norm_after(index), normed, pdl=pdl)
        return self._whole(self._product("head", normed, self._head).tensor.view(num_rows, -1))

    def chunks(
        self,
        inputs: dict[str, torch.Tensor],
        num_decodes: int,
        sampled: torch.Tensor,
        kv: KVBlocks,
    ) -> torch.Tensor:
        """Computes decodes and chunks together; returns the last hidden states of the rows that are drawn from, and
        behind them of those whose next token is scored. ``logits`` makes logits of them."""
        num_rows = len(inputs["ids"])
        shape = self.architecture
        residual = torch.empty(num_rows, shape.hidden_size, dtype=self.dtype, device=self.device)
        normed = torch.empty_like(residual)
        seen = torch.empty(num_rows, shape.num_heads * shape.head_dim, dtype=self.dtype, device=self.device)
        kept = inputs["drawn_rows"]
        if "scored_rows" in inputs:
            kept = torch.cat([kept, inputs["scored_rows"]])
        self._embed(inputs, num_rows, sampled, residual, normed, kv, update=False, pdl=False)
        for index, layer in enumerate(self._layers):
            qkv = functional.linear(normed, layer.qkv)
            if num_decodes:
                positions, slots = inputs["positions"], inputs["slots"]
                self._decode_attention(index, layer, Parts(qkv), positions, slots, num_decodes, seen, kv, pdl=False)
            if num_decodes < num_rows:
                self._chunk_attention(index, layer, qkv, inputs, num_decodes, seen, kv)
            del qkv
            if index == shape.num_layers - 1:  # keys and values are written: only rows with a result go on
                seen, residual = seen[kept], residual[kept]
                normed = normed[: len(residual)]
                if not len(residual):
                    return residual
            output = Parts(self.group.add_up(functional.linear(seen, layer.output)))
            self._add_norm(output, residual, layer.mlp_norm, normed, pdl=False)
            gated = torch.empty(len(normed), shape.intermediate_size, dtype=self.dtype, device=self.device)
            self._gate(Parts(functional.linear(normed, layer.gate_up)), gated, pdl=False)
            down = Parts(self.group.add_up(functional.linear(gated, layer.down)))
            self._add_norm(down, residual, self._norm_after(index), normed, pdl=False)
            del gated
        return normed

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """The logits of rows that ``chunks`` returned; of several ranks, whole on the one that draws."""
        return self._whole(functional.linear(hidden, self._head))

    def _decode_one(self, inputs: dict[str, torch.Tensor], sampled: torch.Tensor, kv: KVBlocks) -> torch.Tensor:
        """Decodes a single row with norms, residuals and gates fused into the products: five kernels a layer."""
        scratch, pdl = self._scratch, self._pdl
        residual, seen, gated = scratch.residual[:1], scratch.seen[:1], scratch.gated[:1]
        qkv, logits = scratch.qkv, scratch.logits
        self._embed(inputs, 1, sampled, residual, scratch.normed[:1], kv, update=True, pdl=pdl)
        for index, layer in enumerate(self._layers):
            self._one_row("qkv", residual, layer.qkv, qkv, norm=layer.input_norm)
            positions, slots = inputs["positions"], inputs["slots"]
            self._decode_attention(index, layer, Parts(qkv), positions, slots, 1, seen, kv, pdl=pdl)
            self._one_row("output", seen, layer.output, residual, residual=residual)
            self._one_row("gate_up", residual, layer.gate_up, gated, norm=layer.mlp_norm, gated=True)
            self._one_row("down", gated, layer.down, residual, residual=residual)
        self._one_row("head", residual, self._head, logits, norm=self._norm)
        return logits

    def _takes_one_row(self) -> bool:
        if self.group.is_cut:
            return False  # a sum over ranks stands between a product and its residual
        hidden, layer = self.architecture.hidden_size, self._layers[0]
        products = {"qkv": layer.qkv, "output": layer.output, "down": layer.down, "head": self._head}
        shapes = {name: (weight.shape[0], weight.shape[1]) for name, weight in products.items()}
        shapes["gate_up"] = (layer.gate_up.shape[0] // 2, layer.gate_up.shape[1])
        return all(tuning.one_row(name, hidden, *shape) for name, shape in shapes.items())

    def _norm_after(self, index: int) -> torch.Tensor:
        return self._layers[index + 1].input_norm if index + 1 < len(self._layers) else self._norm

    def _embed(
        self,
        inputs: dict[str, torch.Tensor],
        num_rows: int,
        sampled: torch.Tensor,
        residual: torch.Tensor,
        normed: torch.Tensor,
        kv: KVBlocks,
        *,
        update: bool,
        pdl: bool,
    ) -> None:
        if self.group.is_cut:
            self._embed_part(inputs, num_rows, sampled, residual, normed, kv, update=update)
            return
        size = self.architecture.hidden_size
        width = ceil_pow2(size)
        places, blocks = (inputs["new_places"], inputs["new_blocks"]) if update else (inputs["ids"], inputs["ids"])
        embed_norm[(num_rows,)](
            inputs["ids"], sampled, self._embedding, residual, self._layers[0].input_norm, normed,
            kv.tables, places, blocks, self.architecture.rms_norm_eps,
            SIZE=size, WIDTH=width, UPDATE=update, PDL=pdl, **launch(num_warps=_norm_warps(width), pdl=pdl),
        )  # fmt: skip

    def _embed_part(
        self,
        inputs: dict[str, torch.Tensor],
        num_rows: int,
        sampled: torch.Tensor,
        residual: torch.Tensor,
        normed: torch.Tensor,
        kv: KVBlocks,
        *,
        update: bool,
    ) -> None:
        """The embedding with a vocabulary cut over ranks: every rank but the token's own adds zeros."""
        if update:
            places, blocks = inputs["new_places"][:num_rows].long(), inputs["new_blocks"][:num_rows]
            is_new = places >= 0  # the last place of the tables is the spare slot's, which holds the spare block
            places = torch.where(is_new, places, kv.tables.numel() - 1)
            kv.tables.view(-1).scatter_(0, places, torch.where(is_new, blocks, kv.num_blocks))
        ids = inputs["ids"][:num_rows]
        ids = torch.where(ids < 0, sampled[(-1 - ids).clamp_min(0)], ids)
        here = self.group.share.vocabulary(self.architecture.vocab_size)
        is_here = (ids >= here.start) & (ids < here.stop)
        rows = self._embedding[torch.where(is_here, ids - here.start, 0)] * is_here.unsqueeze(1)
        residual.zero_()
        self._add_norm(Parts(self.group.add_up(rows)), residual, self._layers[0].input_norm, normed, pdl=False)

    def _add_norm(
        self, parts: Parts, residual: torch.Tensor, weight: torch.Tensor, normed: torch.Tensor, *, pdl: bool
    ) -> None:
        size = self.architecture.hidden_size
        width = ceil_pow2(size)
        add_norm[(len(residual),)](
            parts.tensor, parts.stride, residual, weight, normed, self.architecture.rms_norm_eps,
            SIZE=size, WIDTH=width, NUM_PARTS=parts.count, PDL=pdl, **launch(num_warps=_norm_warps(width), pdl=pdl),
        )  # fmt: skip

    def _gate(self, parts: Parts, gated: torch.Tensor, *, pdl: bool) -> None:
        size = self.architecture.intermediate_size
        gate[(len(gated), -(-size // _GATE_WIDTH))](
            parts.tensor, parts.stride, gated,
            SIZE=size, WIDTH=_GATE_WIDTH, NUM_PARTS=parts.count, PDL=pdl, **launch(num_warps=4, pdl=pdl),
        )  # fmt: skip

    def _product(self, name: str, x: torch.Tensor, weight: torch.Tensor) -> Parts:
        num_rows, (num_outputs, num_inputs) = len(x), weight.shape
        shape = None
        if self._pdl and self.dtype == torch.bfloat16:
            shape = tuning.few_rows(name, self.architecture.hidden_size, num_rows, num_outputs, num_inputs)
        if shape is None:
            return Parts(functional.linear(x, weight))
        dtype = torch.float32 if shape.num_parts > 1 else self.dtype
        out = torch.empty(shape.num_parts, num_rows, num_outputs, dtype=dtype, device=self.device)
        grid = (-(-num_outputs // shape.outputs), shape.num_parts, -(-num_rows // shape.rows))
        few_rows[grid](
            TensorDescriptor.from_tensor(x, [shape.rows, shape.width]),
            TensorDescriptor.from_tensor(weight, [shape.outputs, shape.width]),
            weight, out, num_rows, num_outputs,
            NUM_INPUTS=num_inputs, ROWS=shape.rows, OUTPUTS=shape.outputs, WIDTH=shape.width,
            NUM_PARTS=shape.num_parts, STAGES=shape.stages, AHEAD=256, PDL=True,
            **launch(num_warps=shape.num_warps, pdl=True),
        )  # fmt: skip
        return Parts(out, shape.num_parts, num_rows * num_outputs)

    def _summed(self, name: str, x: torch.Tensor, weight: torch.Tensor) -> Parts:
        """A product whose inputs are cut over the ranks, summed over them."""
        if not self.group.is_cut:
            return self._product(name, x, weight)
        return Parts(self.group.add_up(functional.linear(x, weight)))

    def _whole(self, logits: torch.Tensor) -> torch.Tensor:
        """The logits of the whole vocabulary, on the rank that draws."""
        if not self.group.is_cut:
            return logits
        return self.group.gather(logits)[:, : self.architecture.vocab_size].contiguous()

    def _one_row(
        self,
        name: str,
        x: torch.Tensor,
        weight: torch.Tensor,
        out: torch.Tensor,
        *,
        norm: torch.Tensor | None = None,
        residual: torch.Tensor | None = None,
        gated: bool = False,
    ) -> None:
        num_outputs, num_inputs = weight.shape[0] // (2 if gated else 1), weight.shape[1]
        shape = tuning.one_row(name, self.architecture.hidden_size, num_outputs, num_inputs)
        assert shape is not None, "asked before"
        one_row[(num_outputs // shape.rows,)](
            x, weight if norm is None else norm, weight, x if residual is None else residual, out,
            num_outputs, self.architecture.rms_norm_eps,
            NUM_INPUTS=num_inputs, ROWS=shape.rows, WIDTH=shape.width, NORM=norm is not None,
            RESIDUAL=residual is not None, GATE=gated, PDL=self._pdl,
            **launch(num_warps=shape.num_warps, pdl=self._pdl),
        )  # fmt: skip

    def _decode_attention(
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
        model, scratch = self.architecture, self._scratch
        shape = self._decode_shape(num_rows, kv.block_size)
        described = shape.described and kv.described
        decode_attention[(model.num_kv_heads, num_rows, shape.num_splits)](
            qkv.tensor, qkv.stride, *self._head_weights(layer), self._cos, self._sin, positions, slots,
            kv.tables, kv.table_width, kv.descriptor if described else kv.tensor, kv.tensor, kv.layer_row(index), seen,
            scratch.part_sums, scratch.part_logs, scratch.arrivals, model.head_dim**-0.5, model.rms_norm_eps,
            NUM_HEADS=model.num_heads, NUM_KV_HEADS=model.num_kv_heads,
            GROUP_WIDTH=max(16, ceil_pow2(model.group_size)), DIM=model.head_dim, DIM_WIDTH=_dim_width(model),
            BLOCK_SIZE=kv.block_size, BLOCK_ROWS=kv.block_rows, TILE=shape.tile, NUM_SPLITS=shape.num_splits,
            NUM_PARTS=qkv.count, BIAS=model.qkv_bias, NORM=model.qk_norm, STAGES=shape.stages, EARLY=shape.early,
            DESCRIBED=described, PRECISION=self._precision, PDL=pdl, **launch(num_warps=shape.num_warps, pdl=pdl),
        )  # fmt: skip

    def _chunk_attention(
        self,
        index: int,
        layer: Layer,
        qkv: torch.Tensor,
        inputs: dict[str, torch.Tensor],
        first: int,
        seen: torch.Tensor,
        kv: KVBlocks,
    ) -> None:
        """Rotates, stores and attends for the prompt chunks: the rows from ``first`` on."""
        model = self.architecture
        common: dict[str, Any] = {
            "NUM_HEADS": model.num_heads,
            "NUM_KV_HEADS": model.num_kv_heads,
            "DIM": model.head_dim,
            "BLOCK_SIZE": kv.block_size,
            "BLOCK_ROWS": kv.block_rows,
        }
        rope_write[(len(qkv) - first,)](
            qkv[first:], *self._head_weights(layer), self._cos, self._sin, inputs["positions"][first:],
            inputs["slots"][first:], kv.tables, kv.table_width, kv.tensor, kv.layer_row(index), model.rms_norm_eps,
            HEADS_WIDTH=ceil_pow2(model.num_heads), KV_HEADS_WIDTH=ceil_pow2(model.num_kv_heads),
            HALF_WIDTH=ceil_pow2(model.head_dim // 2), BIAS=model.qkv_bias, NORM=model.qk_norm,
            **common, **launch(num_warps=4),
        )  # fmt: skip
        shape = tuning.chunk_shape(kv.block_size, is_exact=self._is_exact)
        described = kv.described and shape.tile == kv.block_size
        chunk_attention[(model.num_heads, len(inputs["tiles"]))](
            qkv, kv.descriptor if described else kv.tensor, kv.tensor, kv.layer_row(index), kv.tables, kv.table_width,
            inputs["tiles"], seen, model.head_dim**-0.5,
            DIM_WIDTH=_dim_width(model), QUERIES=shape.queries, TILE=shape.tile, STAGES=shape.stages,
            DESCRIBED=described, PRECISION=self._precision, **common, **launch(num_warps=shape.num_warps),
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
        return tuning.decode_shape(num_rows, block_size, is_exact=self._is_exact)

    @property
    def queries_per_tile(self) -> int:
        """Queries that one program of ``chunk_attention`` serves."""
        return tuning.chunk_shape(64, is_exact=self._is_exact).queries

    @property
    def num_weights(self) -> int:
        """Weights that each token is multiplied with."""
        layer = self._layers[0]
        per_layer = sum(weight.numel() for weight in (layer.qkv, layer.output, layer.gate_up, layer.down))
        return per_layer * len(self._layers) + self._head.numel()


def _norm_warps(width: int) -> int:
    return 8 if width > 2048 else 4 if width > 512 else 1


def _dim_width(model: Architecture) -> int:
    return max(16, ceil_pow2(model.head_dim))
