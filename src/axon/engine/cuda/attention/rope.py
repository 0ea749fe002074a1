"""Rotary embedding of prompt chunks: rotates queries and keys, writes keys and values into their blocks."""

import triton.language as tl

from axon.engine.cuda.jit import kernel


@kernel
def _rotated(
    rows: tl.tensor,
    row_scale: tl.tensor,
    output_scales: tl.tensor,
    bias: tl.tensor,
    norm: tl.tensor,
    heads: tl.tensor,
    at: tl.tensor,
    cos: tl.tensor,
    sin: tl.tensor,
    eps: tl.tensor,
    first_head: tl.constexpr,
    num_heads: tl.constexpr,
    DIM: tl.constexpr,
    BIAS: tl.constexpr,
    NORM: tl.constexpr,
    SCALED: tl.constexpr,
) -> tl.tensor:
    """The two halves of some heads of a row: biased and normalised where the model does so, and rotated."""
    HALF: tl.constexpr = DIM // 2
    place = (first_head + heads[:, None]) * DIM + at[None, :]
    mask = (heads < num_heads)[:, None] & (at < HALF)[None, :]
    low = tl.load(rows + place, mask=mask, other=0.0).to(tl.float32)
    high = tl.load(rows + place + HALF, mask=mask, other=0.0).to(tl.float32)
    if SCALED:
        low = low * (row_scale * tl.load(output_scales + place, mask=mask, other=0.0))
        high = high * (row_scale * tl.load(output_scales + place + HALF, mask=mask, other=0.0))
    if BIAS:
        low += tl.load(bias + place, mask=mask, other=0.0).to(tl.float32)
        high += tl.load(bias + place + HALF, mask=mask, other=0.0).to(tl.float32)
    if NORM:
        scale = tl.rsqrt((tl.sum(low * low, 1) + tl.sum(high * high, 1)) / DIM + eps)[:, None]
        low = low * scale * tl.load(norm + at, mask=at < HALF, other=0.0).to(tl.float32)[None, :]
        high = high * scale * tl.load(norm + HALF + at, mask=at < HALF, other=0.0).to(tl.float32)[None, :]
    return low * cos - high * sin, high * cos + low * sin


@kernel
def rope_write(
    qkv: tl.tensor,
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
    kv: tl.tensor,
    layer_row: tl.tensor,
    eps: tl.tensor,
    NUM_HEADS: tl.constexpr,
    HEADS_WIDTH: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    KV_HEADS_WIDTH: tl.constexpr,
    DIM: tl.constexpr,
    HALF_WIDTH: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    BIAS: tl.constexpr,
    NORM: tl.constexpr,
    SCALED: tl.constexpr,
) -> None:
    """Rotates queries in place; writes keys and values to the block of the row's position.

    SCALED: the rows are a product of fp8 numbers, whose scales they are multiplied with first.
    """
    row = tl.program_id(0).to(tl.int64)
    HALF: tl.constexpr = DIM // 2
    at = tl.arange(0, HALF_WIDTH)
    position = tl.load(positions + row)
    slot = tl.load(slots + row)
    cos = tl.load(cos_table + position * HALF + at, mask=at < HALF, other=0.0)[None, :]
    sin = tl.load(sin_table + position * HALF + at, mask=at < HALF, other=0.0)[None, :]
    rows = qkv + row * ((NUM_HEADS + 2 * NUM_KV_HEADS) * DIM)
    row_scale = tl.load(row_scales + row) if SCALED else 1.0

    heads = tl.arange(0, HEADS_WIDTH)
    low, high = _rotated(
        rows, row_scale, output_scales, bias, query_norm, heads, at, cos, sin, eps,
        0, NUM_HEADS, DIM, BIAS, NORM, SCALED,
    )  # fmt: skip
    place = rows + heads[:, None] * DIM + at[None, :]
    mask = (heads < NUM_HEADS)[:, None] & (at < HALF)[None, :]
    tl.store(place, low.to(qkv.dtype.element_ty), mask=mask)
    tl.store(place + HALF, high.to(qkv.dtype.element_ty), mask=mask)

    heads = tl.arange(0, KV_HEADS_WIDTH)
    low, high = _rotated(
        rows, row_scale, output_scales, bias, key_norm, heads, at, cos, sin, eps,
        NUM_HEADS, NUM_KV_HEADS, DIM, BIAS, NORM, SCALED,
    )  # fmt: skip
    mask = (heads < NUM_KV_HEADS)[:, None] & (at < HALF)[None, :]
    block = tl.load(tables + slot * table_width + position // BLOCK_SIZE).to(tl.int64)
    kv_row = block * BLOCK_ROWS + layer_row + heads[:, None] * BLOCK_SIZE + position % BLOCK_SIZE
    keys = kv + kv_row * DIM + at[None, :]
    tl.store(keys, low.to(kv.dtype.element_ty), mask=mask)
    tl.store(keys + HALF, high.to(kv.dtype.element_ty), mask=mask)
    place = (NUM_HEADS + NUM_KV_HEADS + heads[:, None]) * DIM + at[None, :]
    values = keys + NUM_KV_HEADS * BLOCK_SIZE * DIM
    low = tl.load(rows + place, mask=mask, other=0.0).to(tl.float32)
    high = tl.load(rows + place + HALF, mask=mask, other=0.0).to(tl.float32)
    if SCALED:
        low = low * (row_scale * tl.load(output_scales + place, mask=mask, other=0.0))
        high = high * (row_scale * tl.load(output_scales + place + HALF, mask=mask, other=0.0))
    if BIAS:
        low += tl.load(bias + place, mask=mask, other=0.0).to(tl.float32)
        high += tl.load(bias + place + HALF, mask=mask, other=0.0).to(tl.float32)
    tl.store(values, low.to(kv.dtype.element_ty), mask=mask)
    tl.store(values + HALF, high.to(kv.dtype.element_ty), mask=mask)
