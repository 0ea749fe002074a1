"""Row-wise kernels: embedding, RMS norms, SwiGLU gate. They add up products that come as partial sums."""

import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from axon.engine.cuda.jit import kernel


@kernel
def embed_norm(
    ids: tl.tensor,
    sampled: tl.tensor,
    embedding: tl.tensor,
    residual: tl.tensor,
    weight: tl.tensor,
    out: tl.tensor,
    tables: tl.tensor,
    new_places: tl.tensor,
    new_blocks: tl.tensor,
    eps: tl.tensor,
    SIZE: tl.constexpr,
    WIDTH: tl.constexpr,
    UPDATE: tl.constexpr,
    PDL: tl.constexpr,
) -> None:
    """Writes each id's embedding and its norm. An id of -1 - n stands for the n-th token drawn by the step before.

    UPDATE: each row may enter one new block into its sequence's block table.
    """
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, WIDTH)
    if PDL:
        gdc_launch_dependents()
        gdc_wait()
    id = tl.load(ids + row)
    if id < 0:
        id = tl.load(sampled - 1 - id)
    values = tl.load(embedding + id.to(tl.int64) * SIZE + at, mask=at < SIZE, other=0.0)
    tl.store(residual + row * SIZE + at, values, mask=at < SIZE)
    wide = values.to(tl.float32)
    scale = tl.rsqrt(tl.sum(wide * wide, 0) / SIZE + eps)
    weights = tl.load(weight + at, mask=at < SIZE, other=0.0).to(tl.float32)
    tl.store(out + row * SIZE + at, (wide * scale * weights).to(out.dtype.element_ty), mask=at < SIZE)
    if UPDATE:
        place = tl.load(new_places + row)
        if place >= 0:
            tl.store(tables + place, tl.load(new_blocks + row))


@kernel
def add_norm(
    parts: tl.tensor,
    part_stride: tl.tensor,
    residual: tl.tensor,
    weight: tl.tensor,
    out: tl.tensor,
    eps: tl.tensor,
    SIZE: tl.constexpr,
    WIDTH: tl.constexpr,
    NUM_PARTS: tl.constexpr,
    PDL: tl.constexpr,
) -> None:
    """Adds the partial sums to the residual and writes its norm to ``out``."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, WIDTH)
    weights = tl.load(weight + at, mask=at < SIZE, other=0.0).to(tl.float32)
    if PDL:
        gdc_launch_dependents()
        gdc_wait()
    wide = tl.load(residual + row * SIZE + at, mask=at < SIZE, other=0.0).to(tl.float32)
    for part in tl.static_range(NUM_PARTS):
        wide += tl.load(parts + part * part_stride + row * SIZE + at, mask=at < SIZE, other=0.0).to(tl.float32)
    tl.store(residual + row * SIZE + at, wide.to(residual.dtype.element_ty), mask=at < SIZE)
    scale = tl.rsqrt(tl.sum(wide * wide, 0) / SIZE + eps)
    tl.store(out + row * SIZE + at, (wide * scale * weights).to(out.dtype.element_ty), mask=at < SIZE)


@kernel
def gate(
    parts: tl.tensor,
    part_stride: tl.tensor,
    out: tl.tensor,
    SIZE: tl.constexpr,
    WIDTH: tl.constexpr,
    NUM_PARTS: tl.constexpr,
    PDL: tl.constexpr,
) -> None:
    """silu(first half) times second half of each row."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    if PDL:
        gdc_launch_dependents()
        gdc_wait()
    first = tl.zeros([WIDTH], tl.float32)
    second = tl.zeros([WIDTH], tl.float32)
    for part in tl.static_range(NUM_PARTS):
        base = parts + part * part_stride + row * (2 * SIZE)
        first += tl.load(base + at, mask=at < SIZE, other=0.0).to(tl.float32)
        second += tl.load(base + SIZE + at, mask=at < SIZE, other=0.0).to(tl.float32)
    result = first * tl.sigmoid(first) * second
    tl.store(out + row * SIZE + at, result.to(out.dtype.element_ty), mask=at < SIZE)


@kernel
def write_tables(tables: tl.tensor, places: tl.tensor, blocks: tl.tensor, WIDTH: tl.constexpr) -> None:
    """Writes block ids into the block tables; a place of -1 is padding."""
    at = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    place = tl.load(places + at)
    tl.store(tables + place, tl.load(blocks + at), mask=place >= 0)
