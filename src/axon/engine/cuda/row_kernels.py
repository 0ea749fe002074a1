"""Row-wise kernels: embedding, RMS norms, SwiGLU gate. They add up products that come as partial sums.

QUANTISED: a row is written in fp8, and its scale beside it. SCALED: the partial sums are of fp8 numbers, whose scales
they are multiplied with. See ``rows``.
"""

import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from axon.engine.cuda.jit import kernel


@kernel
def step_of(largest: tl.tensor) -> tl.tensor:
    """The scale of a row in fp8 whose largest number this is."""
    return tl.maximum(largest, 1e-20) * (1.0 / 448.0)


@kernel
def _larger_and_sum(
    largest: tl.tensor, total: tl.tensor, other_largest: tl.tensor, other_total: tl.tensor
) -> tl.tensor:
    return tl.maximum(largest, other_largest), total + other_total


@kernel
def _write_fp8(
    out: tl.tensor,
    scales: tl.tensor,
    row: tl.tensor,
    at: tl.tensor,
    values: tl.tensor,
    largest: tl.tensor,
    factor: tl.tensor,
    SIZE: tl.constexpr,
) -> None:
    """Writes a row times a factor, which goes into the scale and rounds nothing."""
    step = step_of(largest)
    tl.store(scales + row, step * factor)
    tl.store(out + row * SIZE + at, (values * (1.0 / step)).to(tl.float8e4nv), mask=at < SIZE)


@kernel
def _write_norm_fp8(
    out: tl.tensor,
    scales: tl.tensor,
    row: tl.tensor,
    at: tl.tensor,
    wide: tl.tensor,
    weights: tl.tensor,
    eps: tl.tensor,
    SIZE: tl.constexpr,
) -> None:
    """Writes the norm of a row; its largest number and its squares are summed up in one go."""
    values = wide * weights
    largest, squares = tl.reduce((tl.abs(values), wide * wide), 0, _larger_and_sum)
    _write_fp8(out, scales, row, at, values, largest, tl.rsqrt(squares / SIZE + eps), SIZE)


@kernel
def _scaled(
    parts: tl.tensor,
    part_stride: tl.tensor,
    row_scale: tl.tensor,
    scales: tl.tensor,
    place: tl.tensor,
    mask: tl.tensor,
    NUM_PARTS: tl.constexpr,
) -> tl.tensor:
    """The sum of a product's parts at a place, with the scales of its row and outputs."""
    values = tl.load(parts + place, mask=mask, other=0.0).to(tl.float32)
    for part in tl.static_range(1, NUM_PARTS):
        values += tl.load(parts + part * part_stride + place, mask=mask, other=0.0).to(tl.float32)
    return values * (row_scale * scales)


@kernel
def _normed(
    parts: tl.tensor,
    part_stride: tl.tensor,
    place: tl.tensor,
    weight: tl.tensor,
    mask: tl.tensor,
    eps: tl.tensor,
    SIZE: tl.constexpr,
    NUM_PARTS: tl.constexpr,
) -> tl.tensor:
    """The sum of a product's parts, normalised in float32."""
    values = tl.load(parts + place, mask=mask, other=0.0).to(tl.float32)
    for part in tl.static_range(1, NUM_PARTS):
        values += tl.load(parts + part * part_stride + place, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(values * values, 0) / SIZE + eps)
    return values * scale * tl.load(weight, mask=mask, other=0.0).to(tl.float32)


@kernel
def embed_norm(
    ids: tl.tensor,
    sampled: tl.tensor,
    embedding: tl.tensor,
    residual: tl.tensor,
    weight: tl.tensor,
    out: tl.tensor,
    scales: tl.tensor,
    tables: tl.tensor,
    new_places: tl.tensor,
    new_blocks: tl.tensor,
    eps: tl.tensor,
    SIZE: tl.constexpr,
    WIDTH: tl.constexpr,
    UPDATE: tl.constexpr,
    QUANTISED: tl.constexpr,
    PDL: tl.constexpr,
    FACTOR: tl.constexpr = 1.0,
) -> None:
    """Writes each id's embedding and its norm. An id of -1 - n stands for the n-th token drawn by the step before.

    UPDATE: each row may enter one new block into its sequence's block table. FACTOR: embeddings are multiplied by it.
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
    if FACTOR != 1.0:
        values = (values.to(tl.float32) * FACTOR).to(residual.dtype.element_ty)
    tl.store(residual + row * SIZE + at, values, mask=at < SIZE)
    wide = values.to(tl.float32)
    weights = tl.load(weight + at, mask=at < SIZE, other=0.0).to(tl.float32)
    if QUANTISED:
        _write_norm_fp8(out, scales, row, at, wide, weights, eps, SIZE)
    else:
        scale = tl.rsqrt(tl.sum(wide * wide, 0) / SIZE + eps)
        tl.store(out + row * SIZE + at, (wide * scale * weights).to(out.dtype.element_ty), mask=at < SIZE)
    if UPDATE:
        place = tl.load(new_places + row)
        if place >= 0:
            tl.store(tables + place, tl.load(new_blocks + row))


@kernel
def add_norm(
    parts: tl.tensor,
    part_stride: tl.tensor,
    row_scales: tl.tensor,
    output_scales: tl.tensor,
    residual: tl.tensor,
    weight: tl.tensor,
    out: tl.tensor,
    scales: tl.tensor,
    cleared: tl.tensor,
    eps: tl.tensor,
    SIZE: tl.constexpr,
    WIDTH: tl.constexpr,
    NUM_PARTS: tl.constexpr,
    SCALED: tl.constexpr,
    QUANTISED: tl.constexpr,
    CLEARS: tl.constexpr,
    PDL: tl.constexpr,
    post: tl.tensor = None,
    bias: tl.tensor = None,
) -> None:
    """Adds the partial sums to the residual and writes its norm to ``out``.

    ``post``: weights of a norm that the sums go through before they are added. ``bias``: what is added with them.
    CLEARS: ``cleared`` of the row is set to 0, for the kernels that look for the largest number of another row.
    """
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, WIDTH)
    if PDL:
        gdc_launch_dependents()
    weights = tl.load(weight + at, mask=at < SIZE, other=0.0).to(tl.float32)
    if SCALED:
        fixed_scales = tl.load(output_scales + at, mask=at < SIZE, other=0.0)
    if PDL:
        gdc_wait()
    wide = tl.load(residual + row * SIZE + at, mask=at < SIZE, other=0.0).to(tl.float32)
    if SCALED:
        row_scale = tl.load(row_scales + row)
        place = row * SIZE + at
        wide += _scaled(parts, part_stride, row_scale, fixed_scales, place, at < SIZE, NUM_PARTS)
    elif post is not None:
        wide += _normed(parts, part_stride, row * SIZE + at, post + at, at < SIZE, eps, SIZE, NUM_PARTS)
    else:
        for part in tl.static_range(NUM_PARTS):
            wide += tl.load(parts + part * part_stride + row * SIZE + at, mask=at < SIZE, other=0.0).to(tl.float32)
    if bias is not None:
        wide += tl.load(bias + at, mask=at < SIZE, other=0.0).to(tl.float32)
    tl.store(residual + row * SIZE + at, wide.to(residual.dtype.element_ty), mask=at < SIZE)
    if CLEARS:
        tl.store(cleared + row, 0.0)
    if QUANTISED:
        _write_norm_fp8(out, scales, row, at, wide, weights, eps, SIZE)
    else:
        scale = tl.rsqrt(tl.sum(wide * wide, 0) / SIZE + eps)
        tl.store(out + row * SIZE + at, (wide * scale * weights).to(out.dtype.element_ty), mask=at < SIZE)


@kernel
def gate(
    parts: tl.tensor,
    part_stride: tl.tensor,
    row_scales: tl.tensor,
    output_scales: tl.tensor,
    out: tl.tensor,
    scales: tl.tensor,
    SIZE: tl.constexpr,
    WIDTH: tl.constexpr,
    NUM_PARTS: tl.constexpr,
    SCALED: tl.constexpr,
    QUANTISED: tl.constexpr,
    PDL: tl.constexpr,
    GELU: tl.constexpr = False,
) -> None:
    """silu(first half) times second half of each row; GELU: its approximation with tanh in place of silu.

    QUANTISED: a program writes a whole row.
    """
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    if PDL:
        gdc_launch_dependents()
        gdc_wait()
    if SCALED:
        row_scale = tl.load(row_scales + row)
        place = row * (2 * SIZE) + at
        first_scales = tl.load(output_scales + at, mask=at < SIZE, other=0.0)
        second_scales = tl.load(output_scales + SIZE + at, mask=at < SIZE, other=0.0)
        first = _scaled(parts, part_stride, row_scale, first_scales, place, at < SIZE, NUM_PARTS)
        second = _scaled(parts, part_stride, row_scale, second_scales, place + SIZE, at < SIZE, NUM_PARTS)
    else:
        first = tl.zeros([WIDTH], tl.float32)
        second = tl.zeros([WIDTH], tl.float32)
        for part in tl.static_range(NUM_PARTS):
            base = parts + part * part_stride + row * (2 * SIZE)
            first += tl.load(base + at, mask=at < SIZE, other=0.0).to(tl.float32)
            second += tl.load(base + SIZE + at, mask=at < SIZE, other=0.0).to(tl.float32)
    slope = 1.5957691216057308 * (first + 0.044715 * first * first * first) if GELU else first
    result = first * tl.sigmoid(slope) * second
    if QUANTISED:
        _write_fp8(out, scales, row, at, result, tl.max(tl.abs(result), 0), 1.0, SIZE)
    else:
        tl.store(out + row * SIZE + at, result.to(out.dtype.element_ty), mask=at < SIZE)


@kernel
def round_rows(
    rows: tl.tensor, out: tl.tensor, scales: tl.tensor, SIZE: tl.constexpr, WIDTH: tl.constexpr, PDL: tl.constexpr
) -> None:
    """Writes each row in fp8."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, WIDTH)
    if PDL:
        gdc_launch_dependents()
        gdc_wait()
    values = tl.load(rows + row * SIZE + at, mask=at < SIZE, other=0.0).to(tl.float32)
    _write_fp8(out, scales, row, at, values, tl.max(tl.abs(values), 0), 1.0, SIZE)


@kernel
def write_tables(tables: tl.tensor, places: tl.tensor, blocks: tl.tensor, WIDTH: tl.constexpr) -> None:
    """Writes block ids into the block tables; a place of -1 is padding."""
    at = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    place = tl.load(places + at)
    tl.store(tables + place, tl.load(blocks + at), mask=place >= 0)


def norm_warps(width: int) -> int:
    """Number of warps of a norm for rows of ``width`` values."""
    return 8 if width > 2048 else 4 if width > 512 else 1
