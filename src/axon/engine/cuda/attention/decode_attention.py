"""Attention of decodes in one kernel: rotates, writes the new key and value, attends.

A program serves one row, one KV head with all its query heads, and one split of the context (flash decoding). The
last split of a row to finish combines them all. Rows with the longest context come first, so that short ones fill the
gaps at the end.
"""

import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from axon.engine.cuda.jit import kernel


@kernel
def _attend(
    queries: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    seen: tl.tensor,
    highest: tl.tensor,
    total: tl.tensor,
    sums: tl.tensor,
    PRECISION: tl.constexpr,
) -> tl.tensor:
    """Takes in one more tile of keys and values (online softmax); they may be fp8."""
    keys, values = keys.to(queries.dtype), values.to(queries.dtype)
    scores = tl.dot(queries, keys.T, input_precision=PRECISION)
    scores = tl.where(seen[None, :], scores, float("-inf"))
    new_highest = tl.maximum(highest, tl.max(scores, 1))
    weights = tl.exp2(scores - new_highest[:, None])
    shrink = tl.exp2(highest - new_highest)
    total = total * shrink + tl.sum(weights, 1)
    sums = tl.dot(weights.to(values.dtype), values, sums * shrink[:, None], input_precision=PRECISION)
    return new_highest, total, sums


@kernel
def _summed(
    parts: tl.tensor,
    part_stride: tl.tensor,
    bias: tl.tensor,
    row_scale: tl.tensor,
    output_scales: tl.tensor,
    row_start: tl.tensor,
    output: tl.tensor,
    mask: tl.tensor,
    NUM_PARTS: tl.constexpr,
    BIAS: tl.constexpr,
    SCALED: tl.constexpr,
) -> tl.tensor:
    """Some outputs of a row's product: the sum of its parts, scaled and biased where they are."""
    place = row_start + output
    values = tl.load(parts + place, mask=mask, other=0.0).to(tl.float32)
    for part in tl.static_range(1, NUM_PARTS):
        values += tl.load(parts + part * part_stride + place, mask=mask, other=0.0).to(tl.float32)
    if SCALED:
        values = values * (row_scale * tl.load(output_scales + output, mask=mask, other=0.0))
    if BIAS:
        values += tl.load(bias + output, mask=mask, other=0.0).to(tl.float32)
    return values


@kernel
def decode_attention(
    qkv: tl.tensor,
    part_stride: tl.tensor,
    row_scales: tl.tensor,
    output_scales: tl.tensor,
    bias: tl.tensor,
    query_norm: tl.tensor,
    key_norm: tl.tensor,
    cos_table: tl.tensor,
    sin_table: tl.tensor,
    positions: tl.tensor,
    slots: tl.tensor,
    tables: tl.tensor,
    table_width: tl.tensor,
    described: tl.tensor,
    kv: tl.tensor,
    layer_row: tl.tensor,
    out: tl.tensor,
    largest: tl.tensor,
    part_sums: tl.tensor,
    part_logs: tl.tensor,
    arrivals: tl.tensor,
    scale: tl.tensor,
    eps: tl.tensor,
    NUM_HEADS: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    GROUP_WIDTH: tl.constexpr,
    DIM: tl.constexpr,
    DIM_WIDTH: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    TILE: tl.constexpr,
    NUM_SPLITS: tl.constexpr,
    NUM_PARTS: tl.constexpr,
    BIAS: tl.constexpr,
    NORM: tl.constexpr,
    SCALED: tl.constexpr,
    STAGES: tl.constexpr,
    EARLY: tl.constexpr,
    DESCRIBED: tl.constexpr,
    PRECISION: tl.constexpr,
    PDL: tl.constexpr,
    WINDOW: tl.constexpr = 0,
    sinks: tl.tensor = None,
) -> None:
    """EARLY: the first tile is loaded before the kernel waits for the one before it. DESCRIBED: tiles come by TMA.

    WINDOW: the tokens that a row sees, its own included; 0: all. ``sinks`` [head]: scores that take part in the softmax
    and that no value belongs to.

    SCALED: ``qkv`` is a product of fp8 numbers, whose scales it is multiplied with, and ``largest`` [row, KV head]
    gets the largest number of what a KV head's queries see.
    """
    head = tl.program_id(0)
    row = tl.program_id(1)
    split = tl.program_id(2)
    GROUP: tl.constexpr = NUM_HEADS // NUM_KV_HEADS
    HALF: tl.constexpr = DIM // 2
    ROW: tl.constexpr = (NUM_HEADS + 2 * NUM_KV_HEADS) * DIM
    VALUES: tl.constexpr = NUM_KV_HEADS * BLOCK_SIZE
    if PDL:
        gdc_launch_dependents()
    position = tl.load(positions + row)
    table = tables + tl.load(slots + row) * table_width
    num_tiles = tl.cdiv(position, TILE)
    lowest = tl.maximum(position + 1 - WINDOW, 0) if WINDOW > 0 else 0
    num_hidden = lowest // TILE  # tiles of which the row sees nothing
    per_split = tl.maximum(tl.cdiv(num_tiles - num_hidden, NUM_SPLITS), 1)
    num_active = tl.maximum(tl.cdiv(num_tiles - num_hidden, per_split), 1)
    if split < num_active:
        at = tl.arange(0, DIM_WIDTH)
        partner = (at + HALF) % DIM
        group = tl.arange(0, GROUP_WIDTH)
        in_dim = at < DIM
        in_group = (group < GROUP)[:, None] & in_dim[None, :]
        in_tile = tl.arange(0, TILE)
        head_row = layer_row + head * BLOCK_SIZE
        first = num_hidden + split * per_split
        end = tl.minimum(first + per_split, num_tiles)
        cos = tl.load(cos_table + position * HALF + at % HALF, mask=in_dim, other=0.0)
        sin = tl.load(sin_table + position * HALF + at % HALF, mask=in_dim, other=0.0)
        sin = tl.where(at < HALF, -sin, sin)
        if EARLY:
            early_token = first * TILE + in_tile
            early_seen = early_token < position
            if WINDOW > 0:
                early_seen = early_seen & (early_token >= lowest)
            early_block = tl.load(table + early_token // BLOCK_SIZE, mask=early_seen, other=0).to(tl.int64)
            early_row = early_block * BLOCK_ROWS + head_row + early_token % BLOCK_SIZE
            early_place = kv + early_row[:, None] * DIM + at[None, :]
            early_mask = early_seen[:, None] if DIM == DIM_WIDTH else early_seen[:, None] & in_dim[None, :]
            early_keys = tl.load(early_place, mask=early_mask, other=0.0)
            early_values = tl.load(early_place + VALUES * DIM, mask=early_mask, other=0.0)
        if PDL:
            gdc_wait()
        row_scale = tl.load(row_scales + row) if SCALED else 1.0
        start_of_row = row * ROW
        heads = (head * GROUP + group[:, None]) * DIM
        queries = _summed(
            qkv, part_stride, bias, row_scale, output_scales, start_of_row, heads + at[None, :], in_group,
            NUM_PARTS, BIAS, SCALED,
        )  # fmt: skip
        others = _summed(
            qkv, part_stride, bias, row_scale, output_scales, start_of_row, heads + partner[None, :], in_group,
            NUM_PARTS, BIAS, SCALED,
        )  # fmt: skip
        if NORM:
            inverse = tl.rsqrt(tl.sum(queries * queries, 1) / DIM + eps)[:, None]
            queries = queries * inverse * tl.load(query_norm + at, mask=in_dim, other=0.0).to(tl.float32)[None, :]
            others = others * inverse * tl.load(query_norm + partner, mask=in_dim, other=0.0).to(tl.float32)[None, :]
        queries = (queries * cos[None, :] + others * sin[None, :]).to(out.dtype.element_ty).to(tl.float32)
        queries = (queries * (scale * 1.4426950408889634)).to(out.dtype.element_ty)

        highest = tl.full([GROUP_WIDTH], -1e30, tl.float32)
        total = tl.zeros([GROUP_WIDTH], tl.float32)
        sums = tl.zeros([GROUP_WIDTH, DIM_WIDTH], tl.float32)
        start = first
        if EARLY:
            highest, total, sums = _attend(
                queries, early_keys, early_values, early_seen, highest, total, sums, PRECISION
            )
            start = first + 1
        for tile in tl.range(start, end, num_stages=STAGES):
            token = tile * TILE + in_tile
            seen = token < position
            if WINDOW > 0:
                seen = seen & (token >= lowest)
            if DESCRIBED:
                first_row = tl.load(table + tile) * BLOCK_ROWS + head_row
                keys = described.load([first_row, 0])
                values = described.load([first_row + VALUES, 0])
            else:
                if TILE == BLOCK_SIZE:
                    block = tl.load(table + tile).to(tl.int64)
                    kv_row = block * BLOCK_ROWS + head_row + in_tile
                else:
                    block = tl.load(table + token // BLOCK_SIZE, mask=seen, other=0).to(tl.int64)
                    kv_row = block * BLOCK_ROWS + head_row + token % BLOCK_SIZE
                place = kv + kv_row[:, None] * DIM + at[None, :]
                mask = seen[:, None] if DIM == DIM_WIDTH else seen[:, None] & in_dim[None, :]
                keys = tl.load(place, mask=mask, other=0.0)
                values = tl.load(place + VALUES * DIM, mask=mask, other=0.0)
            highest, total, sums = _attend(queries, keys, values, seen, highest, total, sums, PRECISION)

        if split == 0:  # the new token itself
            source = (NUM_HEADS + head) * DIM
            key = _summed(
                qkv, part_stride, bias, row_scale, output_scales, start_of_row, source + at, in_dim,
                NUM_PARTS, BIAS, SCALED,
            )  # fmt: skip
            other = _summed(
                qkv, part_stride, bias, row_scale, output_scales, start_of_row, source + partner, in_dim,
                NUM_PARTS, BIAS, SCALED,
            )  # fmt: skip
            source += NUM_KV_HEADS * DIM
            value = _summed(
                qkv, part_stride, bias, row_scale, output_scales, start_of_row, source + at, in_dim,
                NUM_PARTS, BIAS, SCALED,
            )  # fmt: skip
            if NORM:
                key_inverse = tl.rsqrt(tl.sum(key * key, 0) / DIM + eps)
                key = key * key_inverse * tl.load(key_norm + at, mask=in_dim, other=0.0).to(tl.float32)
                other = other * key_inverse * tl.load(key_norm + partner, mask=in_dim, other=0.0).to(tl.float32)
            key = (key * cos + other * sin).to(kv.dtype.element_ty)
            value = value.to(kv.dtype.element_ty)
            own_block = tl.load(table + position // BLOCK_SIZE).to(tl.int64)
            own_place = kv + (own_block * BLOCK_ROWS + head_row + position % BLOCK_SIZE) * DIM + at
            tl.store(own_place, key, mask=in_dim)
            tl.store(own_place + VALUES * DIM, value, mask=in_dim)
            score = tl.sum(queries.to(tl.float32) * key.to(tl.float32)[None, :], 1)
            new_highest = tl.maximum(highest, score)
            shrink = tl.exp2(highest - new_highest)
            weight = tl.exp2(score - new_highest)
            total = total * shrink + weight
            sums = sums * shrink[:, None] + weight[:, None] * value.to(tl.float32)[None, :]
            highest = new_highest
            if sinks is not None:
                sink = tl.load(sinks + head * GROUP + group, mask=group < GROUP, other=0.0).to(tl.float32)
                sink = sink * 1.4426950408889634
                new_highest = tl.maximum(highest, sink)
                shrink = tl.exp2(highest - new_highest)
                total = total * shrink + tl.exp2(sink - new_highest)
                sums = sums * shrink[:, None]
                highest = new_highest

        sums = sums / total[:, None]
        target = out + row * (NUM_HEADS * DIM) + (head * GROUP + group[:, None]) * DIM + at[None, :]
        if num_active == 1:
            result = sums.to(out.dtype.element_ty)
            tl.store(target, result, mask=in_group)
            if SCALED:
                size = tl.where(in_group, tl.abs(result.to(tl.float32)), 0.0)
                tl.store(largest + row * NUM_KV_HEADS + head, tl.max(tl.max(size, 1), 0))
        else:
            pair = row * NUM_KV_HEADS + head
            base = pair * NUM_SPLITS
            own_part = ((base + split) * GROUP + group[:, None]) * DIM + at[None, :]
            tl.store(part_sums + own_part, sums, mask=in_group)
            tl.store(part_logs + (base + split) * GROUP + group, highest + tl.log2(total), mask=group < GROUP)
            tl.debug_barrier()
            before = tl.atomic_add(arrivals + pair, 1, sem="acq_rel")
            if before == num_active - 1:
                tl.debug_barrier()
                splits = tl.arange(0, NUM_SPLITS)
                active = splits < num_active
                most = 0.0
                for member in tl.static_range(GROUP):
                    logs = tl.load(
                        part_logs + (base + splits) * GROUP + member, mask=active, other=-1e30, cache_modifier=".cg"
                    )
                    all_parts = ((base + splits[:, None]) * GROUP + member) * DIM + at[None, :]
                    in_parts = active[:, None] & in_dim[None, :]
                    part = tl.load(part_sums + all_parts, mask=in_parts, other=0.0, cache_modifier=".cg")
                    shares = tl.exp2(logs - tl.max(logs, 0))
                    combined = tl.sum(part * shares[:, None], 0) / tl.sum(shares, 0)
                    member_place = out + row * (NUM_HEADS * DIM) + (head * GROUP + member) * DIM + at
                    combined = combined.to(out.dtype.element_ty)
                    tl.store(member_place, combined, mask=in_dim)
                    if SCALED:
                        most = tl.maximum(most, tl.max(tl.abs(combined.to(tl.float32)), 0))
                if SCALED:
                    tl.store(largest + row * NUM_KV_HEADS + head, most)
                tl.store(arrivals + pair, 0)
