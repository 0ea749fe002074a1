"""Matrix products of few rows: kernels that read the weights once, at memory bandwidth.

One row goes through a kernel with its norm, residual or gate fused in. A few rows go through tiles that the copy
engine (TMA) loads, split along the inputs (split-K) where there are too few tiles to fill the device; the kernel that
reads the result adds up the partial sums. Everything else is left to cuBLAS.

A few rows may be fp8, with fp8 weights; see ``rows``. One row then goes the way of a few: it is faster there.
"""

import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from axon.engine.cuda.jit import kernel
from axon.engine.cuda.row_kernels import step_of


@kernel
def one_row(
    x: tl.tensor,
    norm: tl.tensor,
    weight: tl.tensor,
    residual: tl.tensor,
    out: tl.tensor,
    num_outputs: tl.tensor,
    eps: tl.tensor,
    NUM_INPUTS: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    NORM: tl.constexpr,
    RESIDUAL: tl.constexpr,
    GATE: tl.constexpr,
    PDL: tl.constexpr,
) -> None:
    """out = weight x. NORM: x is normalised; RESIDUAL: the residual is added; GATE: silu(upper half) * lower half."""
    program = tl.program_id(0)
    rows = program * ROWS + tl.arange(0, ROWS)
    at = tl.arange(0, WIDTH)
    place = weight + rows[:, None] * NUM_INPUTS + at[None, :]
    if PDL:
        gdc_launch_dependents()
    upper = tl.load(place, eviction_policy="evict_first")
    if GATE:
        lower = tl.load(place + num_outputs * NUM_INPUTS, eviction_policy="evict_first")
    if NORM and NUM_INPUTS == WIDTH:
        scales = tl.load(norm + at).to(tl.float32)
    if PDL:
        gdc_wait()
    sums = tl.zeros([ROWS, WIDTH], tl.float32)
    lower_sums = tl.zeros([ROWS, WIDTH], tl.float32)
    squares = tl.zeros([WIDTH], tl.float32)
    for first in tl.static_range(0, NUM_INPUTS, WIDTH):
        if first + WIDTH < NUM_INPUTS:
            next_upper = tl.load(place + (first + WIDTH), eviction_policy="evict_first")
            if GATE:
                next_lower = tl.load(place + (num_outputs * NUM_INPUTS + first + WIDTH), eviction_policy="evict_first")
        values = tl.load(x + first + at).to(tl.float32)
        if NORM:
            squares += values * values
            if NUM_INPUTS != WIDTH:
                scales = tl.load(norm + first + at).to(tl.float32)
            values = values * scales
        sums += upper.to(tl.float32) * values[None, :]
        if GATE:
            lower_sums += lower.to(tl.float32) * values[None, :]
        if first + WIDTH < NUM_INPUTS:
            upper = next_upper
            if GATE:
                lower = next_lower
    result = tl.sum(sums, 1)
    if NORM:
        inverse = tl.rsqrt(tl.sum(squares, 0) / NUM_INPUTS + eps)
        result = result * inverse
    if GATE:
        second = tl.sum(lower_sums, 1)
        if NORM:
            second = second * inverse
        result = result * tl.sigmoid(result) * second
    if RESIDUAL:
        result += tl.load(residual + rows).to(tl.float32)
    tl.store(out + rows, result.to(out.dtype.element_ty))


@kernel
def _prefetch(
    weight_address: tl.tensor,
    first_output: tl.tensor,
    first_input: tl.tensor,
    NUM_INPUTS: tl.constexpr,
    OUTPUTS: tl.constexpr,
    AHEAD: tl.constexpr,
    LINE: tl.constexpr,
) -> None:
    """Asks L2 for the first AHEAD inputs of some outputs' weights, by lines of LINE."""
    outputs = first_output + tl.arange(0, OUTPUTS)
    inputs = first_input + tl.arange(0, AHEAD // LINE) * LINE
    address = (weight_address + outputs[:, None].to(tl.int64) * NUM_INPUTS + inputs[None, :]).to(tl.int64)
    tl.inline_asm_elementwise(
        "prefetch.global.L2 [$1]; mov.u32 $0, 0;", "=r,l", [address], dtype=tl.int32, is_pure=False, pack=1
    )


@kernel
def few_rows(
    x: tl.tensor,
    weight: tl.tensor,
    weight_address: tl.tensor,
    out: tl.tensor,
    largest: tl.tensor,
    scales: tl.tensor,
    num_rows: tl.tensor,
    num_outputs: tl.tensor,
    NUM_INPUTS: tl.constexpr,
    ROWS: tl.constexpr,
    OUTPUTS: tl.constexpr,
    WIDTH: tl.constexpr,
    NUM_PARTS: tl.constexpr,
    STAGES: tl.constexpr,
    AHEAD: tl.constexpr,
    LINE: tl.constexpr,
    ROUNDS: tl.constexpr,
    PDL: tl.constexpr,
) -> None:
    """out[part] = x weight^T over the part's share of the inputs; ``x`` and ``weight`` are tensor descriptors.

    AHEAD: inputs of the weights that are prefetched into L2, by lines of LINE, before the kernel waits for the one
    before it. ROUNDS: if it is not 0, the weights are fp8 and the rows are rounded to fp8 on the way; ``largest`` has
    so many numbers for each row, whose largest is the row's, and the rows' scales are written to ``scales``.
    """
    tile = tl.program_id(0)
    part = tl.program_id(1)
    row_tile = tl.program_id(2)
    SHARE: tl.constexpr = NUM_INPUTS // NUM_PARTS
    start = part * SHARE
    rows = row_tile * ROWS + tl.arange(0, ROWS)
    if PDL:
        gdc_launch_dependents()
        if AHEAD > 0:
            _prefetch(weight_address, tile * OUTPUTS, start, NUM_INPUTS, OUTPUTS, AHEAD, LINE)
        gdc_wait()
    if ROUNDS > 0:
        place = largest + rows[:, None] * ROUNDS + tl.arange(0, ROUNDS)[None, :]
        step = step_of(tl.max(tl.load(place, mask=(rows < num_rows)[:, None], other=0.0), 1))
        inverse = (1.0 / step)[:, None]
        tl.store(scales + rows, step, mask=rows < num_rows)  # every tile writes the same
    sums = tl.zeros([OUTPUTS, ROWS], tl.float32)
    for first in tl.range(0, SHARE, WIDTH, num_stages=STAGES):
        weights = weight.load([tile * OUTPUTS, start + first])
        values = x.load([row_tile * ROWS, start + first])
        if ROUNDS > 0:
            values = (values.to(tl.float32) * inverse).to(tl.float8e4nv)
        sums = tl.dot(weights, values.T, sums)
    outputs = tile * OUTPUTS + tl.arange(0, OUTPUTS)
    place = out + part.to(tl.int64) * num_rows * num_outputs + rows[:, None] * num_outputs + outputs[None, :]
    mask = (rows < num_rows)[:, None] & (outputs < num_outputs)[None, :]
    tl.store(place, tl.trans(sums).to(out.dtype.element_ty), mask=mask)


@kernel
def few_rows_gated(
    x: tl.tensor,
    weight: tl.tensor,
    weight_address: tl.tensor,
    row_scales: tl.tensor,
    output_scales: tl.tensor,
    out: tl.tensor,
    largest: tl.tensor,
    num_rows: tl.tensor,
    num_outputs: tl.tensor,
    NUM_INPUTS: tl.constexpr,
    ROWS: tl.constexpr,
    OUTPUTS: tl.constexpr,
    WIDTH: tl.constexpr,
    STAGES: tl.constexpr,
    AHEAD: tl.constexpr,
    LINE: tl.constexpr,
    PDL: tl.constexpr,
) -> None:
    """out = silu(x upper^T) * (x lower^T) for fp8 rows and weights, the halves of which lie one below the other.

    The largest number of each row is left in ``largest``, which an earlier kernel has set to 0.
    """
    tile = tl.program_id(0)
    row_tile = tl.program_id(1)
    if PDL:
        gdc_launch_dependents()
        if AHEAD > 0:
            _prefetch(weight_address, tile * OUTPUTS, 0, NUM_INPUTS, OUTPUTS, AHEAD, LINE)
            _prefetch(weight_address, num_outputs + tile * OUTPUTS, 0, NUM_INPUTS, OUTPUTS, AHEAD, LINE)
    outputs = tile * OUTPUTS + tl.arange(0, OUTPUTS)
    upper_scales = tl.load(output_scales + outputs)[:, None]
    lower_scales = tl.load(output_scales + num_outputs + outputs)[:, None]
    if PDL:
        gdc_wait()
    uppers = tl.zeros([OUTPUTS, ROWS], tl.float32)
    lowers = tl.zeros([OUTPUTS, ROWS], tl.float32)
    for first in tl.range(0, NUM_INPUTS, WIDTH, num_stages=STAGES):
        upper = weight.load([tile * OUTPUTS, first])
        lower = weight.load([num_outputs + tile * OUTPUTS, first])
        values = x.load([row_tile * ROWS, first])
        uppers = tl.dot(upper, values.T, uppers)
        lowers = tl.dot(lower, values.T, lowers)
    rows = row_tile * ROWS + tl.arange(0, ROWS)
    scales = tl.load(row_scales + rows, mask=rows < num_rows, other=0.0)[None, :]
    uppers = uppers * (upper_scales * scales)
    result = (uppers * tl.sigmoid(uppers) * (lowers * (lower_scales * scales))).to(out.dtype.element_ty)
    tl.atomic_max(largest + rows, tl.max(tl.abs(result.to(tl.float32)), 0), mask=rows < num_rows, sem="relaxed")
    place = out + rows[:, None] * num_outputs + outputs[None, :]
    tl.store(place, tl.trans(result), mask=(rows < num_rows)[:, None] & (outputs < num_outputs)[None, :])
