"""Llama and its relatives on a GPU: a step of decodes, which a CUDA graph can hold, and a step with prompt chunks.

Knows no sequences and no sampling.
"""

import math
from typing import TYPE_CHECKING

import torch

from axon.engine.cuda.adapters.low_rank import Adapting
from axon.engine.cuda.attention.attending import Attending
from axon.engine.cuda.experts.experts import Mixture
from axon.engine.cuda.jit import ceil_pow2, launch, overlaps
from axon.engine.cuda.memory.kv_memory import KVBlocks
from axon.engine.cuda.memory.scratch import Scratch
from axon.engine.cuda.products.products import Products
from axon.engine.cuda.row_kernels import add_norm, embed_norm, gate, norm_warps, round_rows
from axon.engine.cuda.rows import FP8, Parts, Rows, empty_rows
from axon.engine.cuda.weights.layers import Layer, Matrix, Source, load_layer
from axon.engine.cuda.weights.packed import Packed
from axon.engine.load.architecture import Architecture
from axon.engine.parallel.group import Alone, Group

if TYPE_CHECKING:
    from axon.engine.cuda.adapters.adapter_pages import CudaAdapters

_GATE_WIDTH, _FEW = 1024, 64


class CudaLlama:
    """Weights, rotary tables and the buffers of decodes; each rank of a group holds a part of every layer.

    ``fp8``: the layers' matrices and the rows that they are multiplied with are fp8; embedding and head are not.
    """

    def __init__(
        self,
        architecture: Architecture,
        weights: Source,
        device: torch.device,
        *,
        max_model_len: int,
        max_rows: int,
        group: Group | None = None,
        fp8: bool = False,
    ) -> None:
        self.architecture = architecture
        self.device = device
        self.group = group or Alone()
        self.is_fp8 = fp8
        self._embedding = weights.take("model.embed_tokens.weight").to(device)
        self.dtype = self._embedding.dtype
        numbers = range(architecture.num_layers)
        self._pdl = overlaps(device)
        packs = self._pdl and self.dtype == torch.bfloat16 and architecture.family.is_plain
        self._layers = [load_layer(architecture, weights, each, device, fp8=fp8, packs=packs) for each in numbers]
        self._norm = weights.take("model.norm.weight").to(device)
        head = self._embedding if architecture.tied_embedding else weights.take("lm_head.weight").to(device)
        self._head = Rows(head)
        self._is_exact = self.dtype == torch.float32
        self._rows_dtype = FP8 if fp8 else self.dtype
        self._scratch = Scratch(architecture, max_rows, self.dtype, device, fp8=fp8)
        self._attending = Attending(architecture, self._scratch, max_model_len, device, is_exact=self._is_exact)
        eps = architecture.rms_norm_eps
        self._products = Products(architecture.hidden_size, self.dtype, device, eps=eps, pdl=self._pdl)
        experts = architecture.experts
        self._mixture = Mixture(experts, self.dtype, device, pdl=self._pdl) if experts else None
        self._embedding_factor = float(torch.tensor(architecture.embedding_scale).to(self.dtype))
        self._gelu = architecture.family.activation != "silu"
        self.adapters: CudaAdapters | None = None
        """The LoRA adapters that rows may be computed with, where there are any."""

    def decode(
        self, inputs: dict[str, torch.Tensor], num_rows: int, sampled: torch.Tensor, kv: KVBlocks
    ) -> torch.Tensor:
        """Computes one token of each sequence and returns their logits; enters new blocks into the block tables."""
        adapting = self._adapting(inputs, "adapter", chunks=False)
        if num_rows == 1 and adapting is None and self._takes_one_row():
            return self._decode_one(inputs, sampled, kv)
        return self._decode(inputs, num_rows, sampled, kv, adapting)

    def runs(self, inputs: dict[str, torch.Tensor], sampled: torch.Tensor, kv: KVBlocks) -> torch.Tensor:
        """Computes short runs, a few tokens of each sequence, as decodes are computed but for their attention;
        returns the logits of the rows that are drawn from. New blocks are in the tables already."""
        return self._decode(inputs, len(inputs["ids"]), sampled, kv, None, runs=True)

    def _decode(
        self, inputs: dict[str, torch.Tensor], num_rows: int, sampled: torch.Tensor, kv: KVBlocks,
        adapting: Adapting | None, *, runs: bool = False,
    ) -> torch.Tensor:  # fmt: skip
        scratch, pdl = self._scratch, self._pdl
        residual, normed, seen = scratch.residual[:num_rows], scratch.normed.first(num_rows), scratch.seen[:num_rows]
        last_normed = scratch.last_normed.first(num_rows)
        rounds = not runs and self._rounds(num_rows)
        largest = scratch.gated_largest[:num_rows]
        self._embed(inputs, num_rows, sampled, residual, normed, kv, update=not runs, pdl=pdl)
        positions, slots = inputs["positions"], inputs["slots"]
        for index, layer in enumerate(self._layers):
            if runs:
                self._attending.runs(index, layer, self._products.plain(normed, layer.qkv), inputs, seen, kv)
            else:
                qkv = self._products.product("qkv", normed, layer.qkv)
                if adapting is not None:
                    adapting.add(index, "qkv", normed.values, qkv, pdl=pdl)
                self._attending.decode(index, layer, qkv, positions, slots, num_rows, seen, kv, pdl=pdl)
            if rounds:
                rows = Rows(seen, largest=scratch.seen_largest[:num_rows])
            else:
                rows = self._rounded(seen, scratch.seen_rows, pdl=pdl)
            output = self._summed("output", rows, layer.output, layer.output_bias)
            if adapting is not None:
                adapting.add(index, "output", seen, output, pdl=pdl)
            cleared = largest if rounds else None
            self._add_norm(
                output, residual, layer.mlp_norm, normed, pdl=pdl, cleared=cleared, post=layer.attention_post,
                bias=self._own_bias(layer),
            )  # fmt: skip
            if layer.router is not None:
                down = self._mixed(layer, normed, pdl=pdl)
            elif rounds:
                gated = Rows(scratch.gated_wide[:num_rows], largest=largest)
                self._products.gated(normed, layer.gate_up, gated)
                down = self._summed("down", gated, layer.down)
            else:
                gate_up = self._products.product("gate_up", normed, layer.gate_up)
                down = self._gated_down(index, gate_up, normed, scratch.gated.first(num_rows), adapting, pdl=pdl)
            target = last_normed if index + 1 == len(self._layers) else normed
            self._add_norm(down, residual, self._norm_after(index), target, pdl=pdl, post=layer.mlp_post)
        if runs:
            last_normed = Rows(last_normed.values[inputs["drawn_rows"]])
        return self._whole(self._products.product("head", last_normed, self._head).tensor.view(len(last_normed), -1))

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
        normed = empty_rows(num_rows, shape.hidden_size, self._rows_dtype, self.device)
        seen = torch.empty(num_rows, shape.num_heads * shape.head_dim, dtype=self.dtype, device=self.device)
        kept = inputs["drawn_rows"]
        if "scored_rows" in inputs:
            kept = torch.cat([kept, inputs["scored_rows"]])
        adapting = self._adapting(inputs, "adapter", chunks=True)
        self._embed(inputs, num_rows, sampled, residual, normed, kv, update=False, pdl=False)
        for index, layer in enumerate(self._layers):
            qkv = self._products.plain(normed, layer.qkv)
            if adapting is not None:
                adapting.add(index, "qkv", normed.values, qkv, pdl=False)
            if num_decodes:
                positions, slots = inputs["positions"], inputs["slots"]
                self._attending.decode(index, layer, qkv, positions, slots, num_decodes, seen, kv, pdl=False)
            if num_decodes < num_rows:
                self._attending.chunks(index, layer, qkv, inputs, num_decodes, seen, kv)
            del qkv
            if index == shape.num_layers - 1:  # keys and values are written: only rows with a result go on
                seen, residual = seen[kept], residual[kept]
                normed = normed.first(len(residual))
                if not len(residual):
                    return residual
                adapting = self._adapting(inputs, "kept_adapter", chunks=True)
            output = self._plain_summed(self._rounded(seen, None, pdl=False), layer.output, layer.output_bias)
            if adapting is not None:
                adapting.add(index, "output", seen, output, pdl=False)
            self._add_norm(
                output, residual, layer.mlp_norm, normed, pdl=False, post=layer.attention_post,
                bias=self._own_bias(layer),
            )  # fmt: skip
            if layer.router is not None:
                down = self._mixed(layer, normed, pdl=False)
            else:
                gated = empty_rows(len(normed), shape.intermediate_size, self._rows_dtype, self.device)
                gate_up = self._products.plain(normed, layer.gate_up)
                down = self._gated_down(index, gate_up, normed, gated, adapting, pdl=False, plain=True)
                del gate_up, gated
            if index == shape.num_layers - 1 and self.is_fp8:  # the head reads no fp8
                normed = empty_rows(len(residual), shape.hidden_size, self.dtype, self.device)
            self._add_norm(down, residual, self._norm_after(index), normed, pdl=False, post=layer.mlp_post)
        return normed.values

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """The logits of rows that ``chunks`` returned; of several ranks, whole on the one that draws."""
        return self._whole(self._products.plain(Rows(hidden), self._head).tensor)

    def _decode_one(self, inputs: dict[str, torch.Tensor], sampled: torch.Tensor, kv: KVBlocks) -> torch.Tensor:
        """Decodes a single row with norms, residuals and gates fused into the products: five kernels a layer."""
        scratch, pdl = self._scratch, self._pdl
        residual, seen, gated = scratch.residual[:1], scratch.seen[:1], scratch.gated.values[:1]
        qkv, logits, one_row = scratch.qkv, scratch.logits, self._products.one_row
        self._embed(inputs, 1, sampled, residual, scratch.normed.first(1), kv, update=True, pdl=pdl)
        for index, layer in enumerate(self._layers):
            one_row("qkv", residual, layer.qkv, qkv, norm=layer.input_norm)
            positions, slots = inputs["positions"], inputs["slots"]
            self._attending.decode(index, layer, Parts(qkv), positions, slots, 1, seen, kv, pdl=pdl)
            one_row("output", seen, layer.output, residual, residual=residual)
            one_row("gate_up", residual, layer.gate_up, gated, norm=layer.mlp_norm, gated=True)
            one_row("down", gated, layer.down, residual, residual=residual)
        one_row("head", residual, self._head, logits, norm=self._norm)
        return logits

    def _adapting(self, inputs: dict[str, torch.Tensor], name: str, *, chunks: bool) -> Adapting | None:
        """What adapters add to the products of a step; None where no row of it has one."""
        if self.adapters is None or f"{name}_tiles" not in inputs:
            return None
        return Adapting(self.adapters, inputs[f"{name}_tiles"], inputs[f"{name}_rows"], chunks=chunks)

    def _mixed(self, layer: Layer, normed: Rows, *, pdl: bool) -> Parts:
        """What a mixture of experts makes of the rows, summed over the ranks."""
        assert self._mixture is not None
        assert layer.router is not None
        assert isinstance(layer.gate_up, Rows), "experts are not packed"
        assert isinstance(layer.down, Rows), "experts are not packed"
        parts = self._mixture.compute(normed.values, layer.router, layer.gate_up, layer.down, layer.biases, pdl=pdl)
        return Parts(self.group.add_up(parts.tensor.sum(0))) if self.group.is_cut else parts

    def _gated_down(
        self, index: int, gate_up: Parts, normed: Rows, gated: Rows, adapting: Adapting | None, *, pdl: bool,
        plain: bool = False,
    ) -> Parts:  # fmt: skip
        """The rest of a plain MLP behind its first product: gate and second product. ``plain``: by cuBLAS."""
        down = self._layers[index].down
        if adapting is not None:
            adapting.add(index, "gate_up", normed.values, gate_up, pdl=pdl)
        self._gate(gate_up, gated, pdl=pdl)
        result = self._plain_summed(gated, down) if plain else self._summed("down", gated, down)
        if adapting is not None:
            adapting.add(index, "down", gated.values, result, pdl=pdl)
        return result

    def _takes_one_row(self) -> bool:
        if self.group.is_cut:
            return False  # a sum over ranks stands between a product and its residual
        layer = self._layers[0]
        if self._mixture or self._gelu or self._embedding_factor != 1.0 or layer.attention_post is not None:
            return False
        names = ("qkv", "output", "gate_up", "down")
        return self._products.takes_one_row(
            {"head": self._head, **dict(zip(names, self._layers[0].matrices, strict=True))}
        )

    def _rounds(self, num_rows: int) -> bool:
        """Whether so many rows go through kernels that gate and round them to fp8 on the way."""
        layer, heads = self._layers[0], self.architecture.num_kv_heads
        if self.group.is_cut:
            return False  # a sum over ranks stands behind the product that would round
        return heads == ceil_pow2(heads) and self._products.rounds(num_rows, layer.gate_up, layer.output, layer.down)

    def _norm_after(self, index: int) -> torch.Tensor:
        return self._layers[index + 1].input_norm if index + 1 < len(self._layers) else self._norm

    def _embed(
        self,
        inputs: dict[str, torch.Tensor],
        num_rows: int,
        sampled: torch.Tensor,
        residual: torch.Tensor,
        normed: Rows,
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
            inputs["ids"], sampled, self._embedding, residual, self._layers[0].input_norm,
            normed.values, _scales(normed), kv.tables, places, blocks, self.architecture.rms_norm_eps,
            SIZE=size, WIDTH=width, UPDATE=update, QUANTISED=normed.scales is not None, PDL=pdl,
            FACTOR=self._embedding_factor, **launch(num_warps=norm_warps(width), pdl=pdl),
        )  # fmt: skip

    def _embed_part(
        self,
        inputs: dict[str, torch.Tensor],
        num_rows: int,
        sampled: torch.Tensor,
        residual: torch.Tensor,
        normed: Rows,
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
        rows = rows * self._embedding_factor if self._embedding_factor != 1.0 else rows
        residual.zero_()
        self._add_norm(Parts(self.group.add_up(rows)), residual, self._layers[0].input_norm, normed, pdl=False)

    def _add_norm(
        self,
        parts: Parts,
        residual: torch.Tensor,
        weight: torch.Tensor,
        normed: Rows,
        *,
        pdl: bool,
        cleared: torch.Tensor | None = None,
        post: torch.Tensor | None = None,
        bias: torch.Tensor | None = None,
    ) -> None:
        size = self.architecture.hidden_size
        width = ceil_pow2(size)
        add_norm[(len(residual),)](
            parts.tensor, parts.stride, *parts.scales, residual, weight, normed.values, _scales(normed),
            residual if cleared is None else cleared, self.architecture.rms_norm_eps, SIZE=size, WIDTH=width,
            NUM_PARTS=parts.count, SCALED=parts.is_scaled, QUANTISED=normed.scales is not None,
            CLEARS=cleared is not None, PDL=pdl, post=post, bias=bias,
            **launch(num_warps=self._warps(len(residual), width), pdl=pdl),
        )  # fmt: skip

    def _warps(self, num_rows: int, width: int) -> int:
        """Warps for a row of a norm: twice as many in fp8 where there are few rows, which wait for each other."""
        usual = norm_warps(width)
        return 2 * usual if self.is_fp8 and num_rows <= _FEW and width > 2048 else usual

    def _gate(self, parts: Parts, gated: Rows, *, pdl: bool) -> None:
        size, quantised = self.architecture.intermediate_size, gated.scales is not None
        width = ceil_pow2(size) if quantised else _GATE_WIDTH
        gate[(len(gated), -(-size // width))](
            parts.tensor, parts.stride, *parts.scales, gated.values, _scales(gated),
            SIZE=size, WIDTH=width, NUM_PARTS=parts.count, SCALED=parts.is_scaled, QUANTISED=quantised, PDL=pdl,
            GELU=self._gelu, **launch(num_warps=max(4, min(32, width // 1024)), pdl=pdl),
        )  # fmt: skip

    def _rounded(self, rows: torch.Tensor, out: Rows | None, *, pdl: bool) -> Rows:
        """The rows as a product reads them: in fp8, into ``out`` or new memory, where the weights are."""
        if not self.is_fp8:
            return Rows(rows)
        count, size = rows.shape
        target = out.first(count) if out else empty_rows(count, size, FP8, self.device)
        width = ceil_pow2(size)
        round_rows[(count,)](
            rows, target.values, _scales(target),
            SIZE=size, WIDTH=width, PDL=pdl, **launch(num_warps=norm_warps(width), pdl=pdl),
        )  # fmt: skip
        return target

    def _own_bias(self, layer: Layer) -> torch.Tensor | None:
        """The bias of attention's output, where it is added with the residual: with one rank."""
        return None if self.group.is_cut else layer.output_bias

    def _summed(self, name: str, rows: Rows, weight: Matrix, bias: torch.Tensor | None = None) -> Parts:
        """A product whose inputs are cut over the ranks, summed over them with the bias, which one of them has."""
        if self.group.is_cut:
            return self._plain_summed(rows, weight, bias)
        return self._products.product(name, rows, weight)

    def _plain_summed(self, rows: Rows, weight: Matrix, bias: torch.Tensor | None = None) -> Parts:
        product = self._products.plain(rows, weight)
        if not self.group.is_cut:
            return product
        own = product.whole().to(self.dtype) if product.is_scaled else product.tensor
        return Parts(self.group.add_up(own if bias is None else own + bias))

    def _whole(self, logits: torch.Tensor) -> torch.Tensor:
        """The logits of the whole vocabulary, on the rank that draws."""
        if not self.group.is_cut:
            return logits
        return self.group.gather(logits)[:, : self.architecture.vocab_size].contiguous()

    @property
    def queries_per_tile(self) -> int:
        """Queries that one program of ``chunk_attention`` serves."""
        return self._attending.chunk_shape(64).queries

    @property
    def is_packed(self) -> bool:
        """Whether matrices are in four bits."""
        return any(isinstance(each, Packed) for layer in self._layers for each in layer.matrices)

    @property
    def num_weights(self) -> int:
        """Weights that each token is multiplied with."""
        in_layers = sum(math.prod(each.shape) for layer in self._layers for each in layer.matrices)
        return in_layers + self._head.values.numel() - self.architecture.num_idle_parameters()


def _scales(rows: Rows) -> torch.Tensor:
    """The rows' scales; where there are none, any tensor stands in, which no kernel writes."""
    return rows.values if rows.scales is None else rows.scales
