"""Matrix products of few rows: kernels that read the weights once, at memory bandwidth.

One row goes through a kernel with its norm, residual or gate fused in. A few rows go through tiles that the copy
engine (TMA) loads, split along the inputs (split-K) where there are too few tiles to fill the device; the kernel that
reads the result adds up the partial sums. Everything else is left to cuBLAS.
"""

import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from axon.engine.cuda.jit import kernel


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
def few_rows(
    x: tl.tensor,
    weight: tl.tensor,
    weight_address: tl.tensor,
    out: tl.tensor,
    num_rows: tl.tensor,
    num_outputs: tl.tensor,
    NUM_INPUTS: tl.constexpr,
    ROWS: tl.constexpr,
    OUTPUTS: tl.constexpr,
    WIDTH: tl.constexpr,
    NUM_PARTS: tl.constexpr,
    STAGES: tl.constexpr,
    AHEAD: tl.constexpr,
    PDL: tl.constexpr,
) -> None:
    """out[part] = x weight^T over the part's share of the inputs; ``x`` and ``weight`` are tensor descriptors.

    AHEAD: inputs of the weights that are prefetched into L2 before the kernel waits for the one before it.
    """
    tile = tl.program_id(0)
    part = tl.program_id(1)
    row_tile = tl.program_id(2)
    SHARE: tl.constexpr = NUM_INPUTS // NUM_PARTS
    start = part * SHARE
    if PDL:
        gdc_launch_dependents()
        if AHEAD > 0:
            outputs = tile * OUTPUTS + tl.arange(0, OUTPUTS)
            inputs = tl.arange(0, AHEAD // 64) * 64
            address = (weight_address + outputs[:, None] * NUM_INPUTS + (start + inputs[None, :])).to(tl.int64)
            tl.inline_asm_elementwise(
                "prefetch.global.L2 [$1]; mov.u32 $0, 0;", "=r,l", [address], dtype=tl.int32, is_pure=False, pack=1
            )
        gdc_wait()
    sums = tl.zeros([OUTPUTS, ROWS], tl.float32)
    for first in tl.range(0, SHARE, WIDTH, num_stages=STAGES):
        weights = weight.load([tile * OUTPUTS, start + first])
        values = x.load([row_tile * ROWS, start + first])
        sums = tl.dot(weights, values.T, sums)
    rows = row_tile * ROWS + tl.arange(0, ROWS)
    outputs = tile * OUTPUTS + tl.arange(0, OUTPUTS)
    place = out + part.to(tl.int64) * num_rows * num_outputs + rows[:, None] * num_outputs + outputs[None, :]
    mask = (rows < num_rows)[:, None] & (outputs < num_outputs)[None, :]
    tl.store(place, tl.trans(sums).to(out.dtype.element_ty), mask=mask)
