"""The plan of a batch's attention, made once a step for all layers: tiles, slots, masks. Computes no attention."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch

from axon.engine.batch import Batch, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryGroup:
    """Query tiles of one size that attend to the same KV tiles of their sequences; computed together."""

    num_queries: int
    """Queries of a tile, padding included."""
    num_kv_tiles: int
    input_rows: torch.Tensor
    """Row of each query in the batch; padding repeats a row."""
    output_rows: torch.Tensor
    """Row that each result goes to; padding goes to an extra row behind the last."""
    block_ids: torch.Tensor
    bias: torch.Tensor
    """The causal mask, with the sliding window: 0 or -inf, [query tile, kv tile, query, key]."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The slots that a step's keys and values are written to, and the groups of its queries by sliding window."""

    slots: torch.Tensor
    groups: dict[int, list[QueryGroup]]
    """Window 0: the queries see all."""


class _Shape(NamedTuple):
    """What the query tiles of a group have in common."""

    num_queries: int
    first_kv_tile: int
    end_kv_tile: int


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
        windows: frozenset[int] = frozenset({0}),
    ) -> None:
        self._block_size = block_size
        self._spare_block = spare_block
        self._tile_tokens = tile_tokens
        self._query_sizes = query_sizes
        self._dtype = dtype
        self._windows = windows

    def plan(self, batch: Batch, num_rows: int) -> Plan:
        """Prepares a batch whose rows are padded to ``num_rows``."""
        slots = [self._slot(span, position) for span in batch.spans for position in range(span.first, span.end)]
        slots += [self._spare_block * self._block_size] * (num_rows - len(slots))
        tiles = list(self._cut(batch))
        return Plan(torch.tensor(slots), {window: self._groups(tiles, window, num_rows) for window in self._windows})

    def _groups(self, tiles: list[_QueryTile], window: int, spare_row: int) -> list[QueryGroup]:
        shapes: dict[_Shape, list[_QueryTile]] = defaultdict(list)
        for tile in tiles:
            first_seen = max(0, tile.position - window + 1) if window else 0
            end_kv_tile = -(-(tile.position + tile.length) // self._tile_tokens)
            shape = _Shape(self._size_for(tile.length), first_seen // self._tile_tokens, end_kv_tile)
            shapes[shape].append(tile)
        return [self._group(tiles, shape, window, spare_row) for shape, tiles in shapes.items()]

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

    def _group(self, tiles: list[_QueryTile], shape: _Shape, window: int, spare_row: int) -> QueryGroup:
        size, blocks_per_tile = shape.num_queries, self._tile_tokens // self._block_size
        first_block, end_block = shape.first_kv_tile * blocks_per_tile, shape.end_kv_tile * blocks_per_tile
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
            found = tile.block_ids[first_block:end_block]
            block_ids += [*found, *[self._spare_block] * (end_block - first_block - len(found))]
        return QueryGroup(
            num_queries=size,
            num_kv_tiles=shape.end_kv_tile - shape.first_kv_tile,
            input_rows=torch.tensor(input_rows),
            output_rows=torch.tensor(output_rows),
            block_ids=torch.tensor(block_ids),
            bias=self._bias(torch.tensor(positions), shape, window),
        )

    def _bias(self, positions: torch.Tensor, shape: _Shape, window: int) -> torch.Tensor:
        tokens = torch.arange(shape.first_kv_tile * self._tile_tokens, shape.end_kv_tile * self._tile_tokens)
        keys, queries = tokens.view(1, -1, 1, self._tile_tokens), positions[:, None, :, None]
        hidden = keys > queries
        if window:
            hidden |= keys <= queries - window
        return torch.zeros(hidden.shape, dtype=self._dtype).masked_fill_(hidden, float("-inf"))
