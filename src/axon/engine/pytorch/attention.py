"""Causal attention over paged KV on a CPU. A query's result depends, to the bit, on its own sequence alone.

Keys are summed in tiles of a fixed number of positions, one tile after the other from position 0: the other rows of a
batch or a chunk, and later tokens, stand in other tiles or enter as exact zeros.
"""

import torch

from axon.engine.batch import Batch
from axon.engine.load.architecture import Architecture
from axon.engine.pytorch.attention_plan import Plan, Planner, QueryGroup
from axon.engine.pytorch.kv_memory import KVMemory

_KV_TILE_TOKENS = 128
_REFERENCE_QUERIES = 8
# Larger tiles prefill 15% faster on idle cores, but the library then splits every small product over threads, and
# beside another busy process each thread waits for a core: with one of two cores busy, 400 tokens took 18 to 24 s
# instead of 5 to 9.
_CANDIDATE_QUERIES = (1, 2, 4, 8)


class Attention:
    """Plans batches and computes them layer by layer."""

    def __init__(self, architecture: Architecture, kv: KVMemory) -> None:
        self._kv = kv
        self._num_kv_heads = architecture.num_kv_heads
        self._group_size = architecture.group_size
        self._head_dim = architecture.head_dim
        self._scale = architecture.query_scale
        self._windows = [architecture.window_of(layer) for layer in range(architecture.num_layers)]
        self._tile_tokens = max(1, _KV_TILE_TOKENS // kv.block_size) * kv.block_size
        self._planner = Planner(
            block_size=kv.block_size,
            spare_block=kv.spare_block,
            tile_tokens=self._tile_tokens,
            query_sizes=self._proven_query_sizes(),
            windows=frozenset(self._windows),
            dtype=kv.keys.dtype,
        )

    def plan(self, batch: Batch, num_rows: int) -> Plan:
        """Prepares a batch whose rows are padded to ``num_rows``."""
        return self._planner.plan(batch, num_rows)

    def __call__(
        self,
        layer: int,
        queries: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        plan: Plan,
        sinks: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Stores keys and values [row, kv head, dim]; returns the attention of the queries [row, head, dim].

        ``sinks`` [head]: scores that take part in every softmax, and that no value belongs to."""
        self._kv.write(layer, plan.slots, keys, values)
        output = queries.new_zeros(queries.shape[0] + 1, queries[0].numel())
        for group in plan.groups[self._windows[layer]]:
            seen = self._attend(layer, queries.index_select(0, group.input_rows), group, sinks)
            output.index_copy_(0, group.output_rows, seen)
        return output[:-1]

    def _attend(self, layer: int, queries: torch.Tensor, group: QueryGroup, sinks: torch.Tensor | None) -> torch.Tensor:
        # heads = KV heads; a matrix of the batched products is one KV head x query tile x KV tile.
        heads, share, size, tiles = self._num_kv_heads, self._group_size, group.num_queries, group.num_kv_tiles
        # In float32: bfloat16's vector and scalar paths round a product with a number differently.
        rows = (queries.float() * self._scale).to(queries.dtype)
        rows = rows.view(-1, size, heads, share, self._head_dim).permute(2, 0, 3, 1, 4)
        num_items = rows.shape[1]
        rows = rows.reshape(heads, num_items, 1, share * size, self._head_dim).expand(-1, -1, tiles, -1, -1)

        keys = self._gather(self._kv.keys[layer], group).transpose(1, 2).contiguous()
        scores = torch.bmm(rows.reshape(-1, share * size, self._head_dim), keys)
        scores = scores.view(heads, num_items, tiles, share, size, self._tile_tokens)
        scores += group.bias[None, :, :, None]
        peaks = scores.amax(-1, keepdim=True).amax(2, keepdim=True)
        if sinks is not None:
            sinks = sinks.to(scores.dtype).view(heads, 1, 1, share, 1, 1)
            peaks = torch.maximum(peaks, sinks)
        scores -= peaks
        scores.exp_()

        weights = _sum_tiles(scores.sum(-1, keepdim=True))
        if sinks is not None:
            weights += torch.exp(sinks - peaks)[:, :, 0]
        values = self._gather(self._kv.values[layer], group)
        seen = torch.bmm(scores.view(-1, share * size, self._tile_tokens), values)
        seen = _sum_tiles(seen.view(heads, num_items, tiles, share, size, self._head_dim)) / weights
        return seen.permute(1, 3, 0, 2, 4).reshape(num_items * size, -1)

    def _gather(self, memory: torch.Tensor, group: QueryGroup) -> torch.Tensor:
        return memory.index_select(1, group.block_ids).view(-1, self._tile_tokens, self._head_dim)

    def _proven_query_sizes(self) -> tuple[int, ...]:
        """The query tile sizes that give, on this machine, bitwise the same rows as the reference size."""
        generator = torch.Generator().manual_seed(0)
        num_rows = _CANDIDATE_QUERIES[-1] * self._group_size
        shapes = ((num_rows, self._head_dim), (self._head_dim, self._tile_tokens), (self._tile_tokens, self._head_dim))
        queries, keys, values = (
            torch.randn(1, *shape, generator=generator).to(self._kv.keys.dtype) for shape in shapes
        )

        def see(size: int) -> torch.Tensor:
            parts = torch.split(queries, size * self._group_size, dim=1)
            return torch.cat([torch.bmm(torch.bmm(part.contiguous(), keys), values) for part in parts], dim=1)

        reference = see(_REFERENCE_QUERIES)
        return tuple(size for size in _CANDIDATE_QUERIES if torch.equal(see(size), reference))


def _sum_tiles(parts: torch.Tensor) -> torch.Tensor:
    """Adds up dimension 2 in order: the order of a library's sum depends on the number of terms."""
    total = parts[:, :, 0].clone()
    for index in range(1, parts.shape[2]):
        total += parts[:, :, index]
    return total
