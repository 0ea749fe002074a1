"""The plan of a batch's attention, made once a step for all layers: tiles, slots, masks. Computes no attention."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch

from axon.engine.batch import Batch, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryGroup:
    """Query tiles of one size that attend to the same number of KV tiles; computed together."""

    num_queries: int
    """Queries of a tile, padding included."""
    num_kv_tiles: int
    input_rows: torch.Tensor
    """Row of each query in the batch; padding repeats a row."""
    output_rows: torch.Tensor
    """Row that each result goes to; padding goes to an extra row behind the last."""
    block_ids: torch.Tensor
    bias: torch.Tensor
    """The causal mask, 0 or -inf: [query tile, kv tile, query, key]."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The slots that a step's keys and values are written to, and the groups of its queries."""

    slots: torch.Tensor
    groups: list[QueryGroup]


class _QueryTile(NamedTuple):
    row: int
    """Its first row in the batch."""
    length: int
    position: int
    """Its first position in the sequence."""
    block_ids: tuple[int, ...]


class Planner:
    """Cuts batches into query tiles of proven sizes."""

    def __init__(
        self,
        *,
        block_size: int,
        spare_block: int,
        tile_tokens: int,
        query_sizes: tuple[int, ...],
        dtype: torch.dtype,
    ) -> None:
        self._block_size = block_size
        self._spare_block = spare_block
        self._tile_tokens = tile_tokens
        self._query_sizes = query_sizes
        self._dtype = dtype

    def plan(self, batch: Batch, num_rows: int) -> Plan:
        """Prepares a batch whose rows are padded to ``num_rows``."""
        slots = [self._slot(span, position) for span in batch.spans for position in range(span.first, span.end)]
        slots += [self._spare_block * self._block_size] * (num_rows - len(slots))
        shapes: dict[tuple[int, int], list[_QueryTile]] = defaultdict(list)
        for tile in self._cut(batch):
            num_kv_tiles = -(-(tile.position + tile.length) // self._tile_tokens)
            shapes[self._size_for(tile.length), num_kv_tiles].append(tile)
        groups = [self._group(tiles, *shape, spare_row=num_rows) for shape, tiles in shapes.items()]
        return Plan(torch.tensor(slots), groups)

    def _slot(self, span: Span, position: int) -> int:
        return span.block_ids[position // self._block_size] * self._block_size + position % self._block_size

    def _size_for(self, length: int) -> int:
        return next(size for size in self._query_sizes if size >= length)

    def _cut(self, batch: Batch) -> Iterator[_QueryTile]:
        row = 0
        for span in batch.spans:
            for offset in range(0, len(span.token_ids), self._query_sizes[-1]):
                length = min(self._query_sizes[-1], len(span.token_ids) - offset)
                yield _QueryTile(row + offset, length, span.first + offset, span.block_ids)
            row += len(span.token_ids)

    def _group(self, tiles: list[_QueryTile], size: int, num_kv_tiles: int, *, spare_row: int) -> QueryGroup:
        num_blocks = num_kv_tiles * self._tile_tokens // self._block_size
        input_rows: list[int] = []
        output_rows: list[int] = []
        block_ids: list[int] = []
        positions: list[list[int]] = []
        for tile in tiles:
            padding = size - tile.length
            rows = range(tile.row, tile.row + tile.length)
            input_rows += [*rows, *[tile.row] * padding]
            output_rows += [*rows, *[spare_row] * padding]
            positions.append([*range(tile.position, tile.position + tile.length), *[tile.position] * padding])
            block_ids += [*tile.block_ids[:num_blocks], *[self._spare_block] * (num_blocks - len(tile.block_ids))]
        return QueryGroup(
            num_queries=size,
            num_kv_tiles=num_kv_tiles,
            input_rows=torch.tensor(input_rows),
            output_rows=torch.tensor(output_rows),
            block_ids=torch.tensor(block_ids),
            bias=self._causal_bias(torch.tensor(positions), num_kv_tiles),
        )

    def _causal_bias(self, positions: torch.Tensor, num_kv_tiles: int) -> torch.Tensor:
        keys = torch.arange(num_kv_tiles * self._tile_tokens).view(1, num_kv_tiles, 1, self._tile_tokens)
        hidden = keys > positions[:, None, :, None]
        return torch.zeros(hidden.shape, dtype=self._dtype).masked_fill_(hidden, float("-inf"))
