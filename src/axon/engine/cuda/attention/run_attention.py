"""Attention of short runs: a few consecutive tokens of each sequence, as drafts are verified. Their keys and values are
written already.

A program serves up to ``QUERIES`` rows of one run, one KV head with all its query heads, and one split of the context,
which is read once for all of these rows. The last split of a run to finish combines them all.
"""

import triton.language as tl

from axon.engine.cuda.jit import kernel


@kernel
def run_attention(
    rows: tl.tensor,
    kv: tl.tensor,
    layer_row: tl.tensor,
    tables: tl.tensor,
    table_width: tl.tensor,
    tiles: tl.tensor,
    out: tl.tensor,
    part_sums: tl.tensor,
    part_logs: tl.tensor,
    arrivals: tl.tensor,
    scale: tl.tensor,
    NUM_HEADS: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    DIM: tl.constexpr,
    DIM_WIDTH: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    TILE: tl.constexpr,
    NUM_SPLITS: tl.constexpr,
    STAGES: tl.constexpr,
    PRECISION: tl.constexpr,
    WINDOW: tl.constexpr = 0,
    sinks: tl.tensor = None,
) -> None:
    """``tiles`` has [first row, number of rows, position of the first row, slot] of each run; ``rows`` are rotated
    queries, keys and values of all tokens. WIDTH: queries and query heads together, a power of two.

    WINDOW: the tokens that a row sees, its own included; 0: all. ``sinks`` [head]: scores that take part in the softmax
    and that no value belongs to; the first split counts them.
    """
    head = tl.program_id(0)
    run = tl.program_id(1)
    split = tl.program_id(2)
    GROUP: tl.constexpr = NUM_HEADS // NUM_KV_HEADS
    ROW: tl.constexpr = (NUM_HEADS + 2 * NUM_KV_HEADS) * DIM
    VALUES: tl.constexpr = NUM_KV_HEADS * BLOCK_SIZE
    first_row = tl.load(tiles + run * 4).to(tl.int64)
    count = tl.load(tiles + run * 4 + 1)
    position = tl.load(tiles + run * 4 + 2)
    table = tables + tl.load(tiles + run * 4 + 3) * table_width
    end_token = position + count
    num_tiles = tl.cdiv(end_token, TILE)
    lowest = tl.maximum(position + 1 - WINDOW, 0) if WINDOW > 0 else 0
    num_hidden = lowest // TILE  # tiles of which no row sees anything
    per_split = tl.maximum(tl.cdiv(num_tiles - num_hidden, NUM_SPLITS), 1)
    num_active = tl.maximum(tl.cdiv(num_tiles - num_hidden, per_split), 1)
    if (count > 0) & (split < num_active):
        at = tl.arange(0, DIM_WIDTH)
        in_dim = at < DIM
        member = tl.arange(0, WIDTH)
        query = member // GROUP
        own_head = head * GROUP + member % GROUP
        is_row = query < count
        in_row = is_row[:, None] & in_dim[None, :]
        own_place = (first_row + query) * ROW + own_head * DIM
        queries = tl.load(rows + own_place[:, None] + at[None, :], mask=in_row, other=0.0)
        own_position = position + query
        in_tile = tl.arange(0, TILE)
        head_row = layer_row + head * BLOCK_SIZE
        factor = scale * 1.4426950408889634

        highest = tl.full([WIDTH], -1e30, tl.float32)
        total = tl.zeros([WIDTH], tl.float32)
        sums = tl.zeros([WIDTH, DIM_WIDTH], tl.float32)
        if sinks is not None:
            sink = tl.load(sinks + own_head, mask=is_row, other=0.0).to(tl.float32) * 1.4426950408889634
            highest = tl.where(split == 0, sink, highest)
            total = tl.where(split == 0, 1.0, total)
        first = num_hidden + split * per_split
        end = tl.minimum(first + per_split, num_tiles)
        for tile in tl.range(first, end, num_stages=STAGES):
            token = tile * TILE + in_tile
            inside = token < end_token
            if TILE == BLOCK_SIZE:
                block = tl.load(table + tile).to(tl.int64)
                kv_row = block * BLOCK_ROWS + head_row + in_tile
            else:
                block = tl.load(table + token // BLOCK_SIZE, mask=inside, other=0).to(tl.int64)
                kv_row = block * BLOCK_ROWS + head_row + token % BLOCK_SIZE
            place = kv + kv_row[:, None] * DIM + at[None, :]
            mask = inside[:, None] & in_dim[None, :]
            keys = tl.load(place, mask=mask, other=0.0).to(queries.dtype)
            values = tl.load(place + VALUES * DIM, mask=mask, other=0.0).to(queries.dtype)
            scores = tl.dot(queries, keys.T, input_precision=PRECISION) * factor
            seen = token[None, :] <= own_position[:, None]
            if WINDOW > 0:
                seen = seen & (token[None, :] > own_position[:, None] - WINDOW)
            scores = tl.where(seen, scores, float("-inf"))
            new_highest = tl.maximum(highest, tl.max(scores, 1))
            weights = tl.exp2(scores - new_highest[:, None])
            shrink = tl.exp2(highest - new_highest)
            total = total * shrink + tl.sum(weights, 1)
            sums = tl.dot(weights.to(values.dtype), values, sums * shrink[:, None], input_precision=PRECISION)
            highest = new_highest

        # A row may see nothing of a split: its share of it is nothing.
        sums = sums / tl.where(total > 0, total, 1.0)[:, None]
        target_place = (first_row + query) * (NUM_HEADS * DIM) + own_head * DIM
        target = out + target_place[:, None] + at[None, :]
        if num_active == 1:
            tl.store(target, sums.to(out.dtype.element_ty), mask=in_row)
        else:
            pair = run * NUM_KV_HEADS + head
            base = (pair * NUM_SPLITS).to(tl.int64)
            logs = tl.where(total > 0, highest + tl.log2(tl.where(total > 0, total, 1.0)), -1e30)
            own_part = (base + split) * WIDTH + member
            tl.store(part_sums + own_part[:, None] * DIM + at[None, :], sums, mask=in_row)
            tl.store(part_logs + own_part, logs, mask=is_row)
            tl.debug_barrier()
            before = tl.atomic_add(arrivals + pair, 1, sem="acq_rel")
            if before == num_active - 1:
                tl.debug_barrier()
                most = tl.full([WIDTH], -1e30, tl.float32)
                shares = tl.zeros([WIDTH], tl.float32)
                combined = tl.zeros([WIDTH, DIM_WIDTH], tl.float32)
                for other in tl.range(0, num_active):
                    part = (base + other) * WIDTH + member
                    part_log = tl.load(part_logs + part, mask=is_row, other=-1e30, cache_modifier=".cg")
                    part_sum = tl.load(
                        part_sums + part[:, None] * DIM + at[None, :], mask=in_row, other=0.0, cache_modifier=".cg"
                    )
                    new_most = tl.maximum(most, part_log)
                    kept = tl.exp2(most - new_most)
                    share = tl.exp2(part_log - new_most)
                    shares = shares * kept + share
                    combined = combined * kept[:, None] + part_sum * share[:, None]
                    most = new_most
                combined = combined / shares[:, None]
                tl.store(target, combined.to(out.dtype.element_ty), mask=in_row)
                tl.store(arrivals + pair, 0)
