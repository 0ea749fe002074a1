"""Attention of prompt chunks over the blocks of their sequences; their own keys and values are written already.

A program serves one query head and one tile of a chunk's queries, the longest context first.
"""

import triton.language as tl

from axon.engine.cuda.jit import kernel


@kernel
def _attend(
    queries: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    query_positions: tl.tensor,
    first_token: tl.tensor,
    highest: tl.tensor,
    total: tl.tensor,
    sums: tl.tensor,
    scale: tl.tensor,
    TILE: tl.constexpr,
    MASKED: tl.constexpr,
    PRECISION: tl.constexpr,
    WINDOW: tl.constexpr,
) -> tl.tensor:
    keys, values = keys.to(queries.dtype), values.to(queries.dtype)  # they may be fp8
    scores = tl.dot(queries, keys.T, input_precision=PRECISION)
    if MASKED:
        tokens = first_token + tl.arange(0, TILE)
        seen = tokens[None, :] <= query_positions[:, None]
        if WINDOW > 0:
            seen = seen & (tokens[None, :] > query_positions[:, None] - WINDOW)
        scores = tl.where(seen, scores, float("-inf"))
    new_highest = tl.maximum(highest, tl.max(scores, 1) * scale)
    weights = tl.exp2(scores * scale - new_highest[:, None])  # one operation for product and difference
    shrink = tl.exp2(highest - new_highest)
    total = total * shrink + tl.sum(weights, 1)
    sums = sums * shrink[:, None]
    sums = tl.dot(weights.to(values.dtype), values, sums, input_precision=PRECISION)
    return new_highest, total, sums


@kernel
def _tile(
    described: tl.tensor,
    kv: tl.tensor,
    table: tl.tensor,
    first_token: tl.tensor,
    end: tl.tensor,
    head_row: tl.tensor,
    DIM: tl.constexpr,
    DIM_WIDTH: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    TILE: tl.constexpr,
    VALUES: tl.constexpr,
    DESCRIBED: tl.constexpr,
) -> tl.tensor:
    """Keys and values of a tile of tokens, loaded by the copy engine (TMA) where a tile is a block."""
    if DESCRIBED:
        row = tl.load(table + first_token // BLOCK_SIZE) * BLOCK_ROWS + head_row
        keys = described.load([row, 0])
        values = described.load([row + VALUES, 0])
    else:
        at = tl.arange(0, DIM_WIDTH)
        tokens = first_token + tl.arange(0, TILE)
        inside = tokens < end
        block = tl.load(table + tokens // BLOCK_SIZE, mask=inside, other=0).to(tl.int64)
        rows = block * BLOCK_ROWS + head_row + tokens % BLOCK_SIZE
        place = kv + rows[:, None] * DIM + at[None, :]
        mask = inside[:, None] if DIM == DIM_WIDTH else inside[:, None] & (at < DIM)[None, :]
        keys = tl.load(place, mask=mask, other=0.0)
        values = tl.load(place + VALUES * DIM, mask=mask, other=0.0)
    return keys, values


@kernel
def chunk_attention(
    qkv: tl.tensor,
    described: tl.tensor,
    kv: tl.tensor,
    layer_row: tl.tensor,
    tables: tl.tensor,
    table_width: tl.tensor,
    tiles: tl.tensor,
    out: tl.tensor,
    scale: tl.tensor,
    NUM_HEADS: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    DIM: tl.constexpr,
    DIM_WIDTH: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    QUERIES: tl.constexpr,
    TILE: tl.constexpr,
    STAGES: tl.constexpr,
    DESCRIBED: tl.constexpr,
    PRECISION: tl.constexpr,
    WINDOW: tl.constexpr = 0,
    sinks: tl.tensor = None,
) -> None:
    """``tiles`` [query tile, 4]: first row, number of rows (0: nothing to do), position of the first row, slot.

    WINDOW: the tokens that a query sees, its own included; 0: all. ``sinks`` [head]: scores that take part in the
    softmax and that no value belongs to.
    """
    head = tl.program_id(0)
    tile = tiles + tl.program_id(1) * 4
    first_row = tl.load(tile)
    num_rows = tl.load(tile + 1)
    first_position = tl.load(tile + 2)
    table = tables + tl.load(tile + 3) * table_width
    if num_rows > 0:
        ROW: tl.constexpr = (NUM_HEADS + 2 * NUM_KV_HEADS) * DIM
        VALUES: tl.constexpr = NUM_KV_HEADS * BLOCK_SIZE
        head_row = layer_row + (head // (NUM_HEADS // NUM_KV_HEADS)) * BLOCK_SIZE
        query = tl.arange(0, QUERIES)
        at = tl.arange(0, DIM_WIDTH)
        rows = (first_row + query).to(tl.int64)[:, None]
        mask = (query < num_rows)[:, None] & (at < DIM)[None, :]
        queries = tl.load(qkv + rows * ROW + head * DIM + at[None, :], mask=mask, other=0.0)
        query_positions = first_position + query
        end = first_position + num_rows

        # With a window a query may see nothing of its first tile: the highest score must be a number then.
        highest = tl.full([QUERIES], -1e30 if WINDOW > 0 else float("-inf"), tl.float32)
        total = tl.zeros([QUERIES], tl.float32)
        sums = tl.zeros([QUERIES, DIM_WIDTH], tl.float32)
        num_whole = (first_position + 1) // TILE  # tiles that every query sees all of
        num_tiles = tl.cdiv(end, TILE)
        if WINDOW > 0:
            num_whole = tl.maximum(first_position + 1 - WINDOW, 0) // TILE  # tiles that no query sees any of
        scale2 = scale * 1.4426950408889634
        if WINDOW == 0:
            for index in tl.range(0, num_whole, num_stages=STAGES):
                keys, values = _tile(
                    described, kv, table, index * TILE, end, head_row,
                    DIM, DIM_WIDTH, BLOCK_SIZE, BLOCK_ROWS, TILE, VALUES, DESCRIBED,
                )  # fmt: skip
                highest, total, sums = _attend(
                    queries, keys, values, query_positions, index * TILE, highest, total, sums, scale2,
                    TILE, False, PRECISION, WINDOW,
                )  # fmt: skip
        for index in tl.range(num_whole, num_tiles, num_stages=STAGES):
            keys, values = _tile(
                described, kv, table, index * TILE, end, head_row,
                DIM, DIM_WIDTH, BLOCK_SIZE, BLOCK_ROWS, TILE, VALUES, DESCRIBED,
            )  # fmt: skip
            highest, total, sums = _attend(
                queries, keys, values, query_positions, index * TILE, highest, total, sums, scale2,
                TILE, True, PRECISION, WINDOW,
            )  # fmt: skip
        if sinks is not None:
            sink = tl.load(sinks + head).to(tl.float32) * 1.4426950408889634
            new_highest = tl.maximum(highest, sink)
            shrink = tl.exp2(highest - new_highest)
            total = total * shrink + tl.exp2(sink - new_highest)
            sums = sums * shrink[:, None]
        sums = sums / total[:, None]
        target = out + rows * (NUM_HEADS * DIM) + head * DIM + at[None, :]
        tl.store(target, sums.to(out.dtype.element_ty), mask=mask)
