"""Mixtures of experts: routes rows to experts, sorts them by expert, and multiplies each expert's rows together.

A pair is one row with one of its experts: the pair's number is the row's times the experts of a row, plus which of
them it is. Pairs are sorted by expert into tiles of ROWS places; ``tiles`` [tile, 2] has each tile's expert and its
number of pairs (0: nothing to do), ``pairs`` [tile, ROWS] the pairs. All shapes depend on the number of rows alone, so
that a CUDA graph can hold them; the weights of an expert that no row has chosen are not read.
"""

import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from axon.engine.cuda.jit import kernel


@kernel
def router_parts(
    x: tl.tensor,
    weight: tl.tensor,
    out: tl.tensor,
    num_rows: tl.tensor,
    NUM_INPUTS: tl.constexpr,
    NUM_EXPERTS: tl.constexpr,
    EXPERTS_WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    SHARE: tl.constexpr,
    PRECISION: tl.constexpr,
    PDL: tl.constexpr,
) -> None:
    """out[part] = x weight^T over the part's SHARE of the inputs, in float32."""
    part = tl.program_id(0)
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    experts = tl.arange(0, EXPERTS_WIDTH)
    at = tl.arange(0, WIDTH)
    in_rows = (rows < num_rows)[:, None]
    in_experts = (experts < NUM_EXPERTS)[:, None]
    if PDL:
        gdc_launch_dependents()
        gdc_wait()
    sums = tl.zeros([ROWS, EXPERTS_WIDTH], tl.float32)
    for first in tl.range(0, SHARE, WIDTH):
        inputs = part * SHARE + first + at
        inside = (inputs < NUM_INPUTS)[None, :]
        place = weight + experts[:, None] * NUM_INPUTS + inputs[None, :]
        weights = tl.load(place, mask=in_experts & inside, other=0.0)
        place = x + rows[:, None].to(tl.int64) * NUM_INPUTS + inputs[None, :]
        values = tl.load(place, mask=in_rows & inside, other=0.0)
        sums = tl.dot(values, weights.T, sums, input_precision=PRECISION)
    place = out + (part * num_rows + rows)[:, None].to(tl.int64) * NUM_EXPERTS + experts[None, :]
    tl.store(place, sums, mask=in_rows & (experts < NUM_EXPERTS)[None, :])


@kernel
def route(
    parts: tl.tensor,
    chosen: tl.tensor,
    shares: tl.tensor,
    num_rows: tl.tensor,
    NUM_EXPERTS: tl.constexpr,
    EXPERTS_WIDTH: tl.constexpr,
    PER_TOKEN: tl.constexpr,
    CHOSEN_WIDTH: tl.constexpr,
    NUM_PARTS: tl.constexpr,
    NORMALISES: tl.constexpr,
    PDL: tl.constexpr,
    bias: tl.tensor = None,
) -> None:
    """The likeliest experts of each row, the likeliest first, and what each counts: its probability, or with
    NORMALISES its part of those chosen."""
    row = tl.program_id(0)
    experts = tl.arange(0, EXPERTS_WIDTH)
    inside = experts < NUM_EXPERTS
    if PDL:
        gdc_launch_dependents()
        gdc_wait()
    logits = tl.zeros([EXPERTS_WIDTH], tl.float32)
    for part in tl.static_range(NUM_PARTS):
        place = parts + (part * num_rows + row).to(tl.int64) * NUM_EXPERTS + experts
        logits += tl.load(place, mask=inside, other=0.0)
    if bias is not None:
        logits += tl.load(bias + experts, mask=inside, other=0.0).to(tl.float32)
    logits = tl.where(inside, logits, float("-inf"))
    likely = tl.exp(logits - tl.max(logits, 0))
    total = tl.sum(likely, 0)
    left = tl.where(inside, likely, -1.0)
    places = tl.arange(0, CHOSEN_WIDTH)
    numbers = tl.zeros([CHOSEN_WIDTH], tl.int32)
    found = tl.zeros([CHOSEN_WIDTH], tl.float32)
    for place in tl.static_range(PER_TOKEN):
        best = tl.argmax(left, 0)
        found = tl.where(places == place, tl.max(left, 0), found)
        numbers = tl.where(places == place, best, numbers)
        left = tl.where(experts == best, -1.0, left)
    if NORMALISES:
        total = tl.sum(found, 0)
    target = row * PER_TOKEN + places
    tl.store(chosen + target, numbers, mask=places < PER_TOKEN)
    tl.store(shares + target, found / total, mask=places < PER_TOKEN)


@kernel
def sort_pairs(
    chosen: tl.tensor,
    pairs: tl.tensor,
    tiles: tl.tensor,
    num_pairs: tl.tensor,
    num_tiles: tl.tensor,
    NUM_EXPERTS: tl.constexpr,
    BINS: tl.constexpr,
    ROWS: tl.constexpr,
    CHUNK: tl.constexpr,
    PDL: tl.constexpr,
) -> None:
    """A program writes the tiles of one expert, behind those of the experts before it; one more the empty tiles.

    BINS: a power of two, more than there are experts: the last one counts padding.
    """
    expert = tl.program_id(0)
    at = tl.arange(0, CHUNK)
    bins = tl.arange(0, BINS)
    if PDL:
        gdc_launch_dependents()
        gdc_wait()
    counts = tl.zeros([BINS], tl.int32)
    for first in tl.range(0, num_pairs, CHUNK):
        ids = tl.load(chosen + first + at, mask=first + at < num_pairs, other=BINS - 1)
        counts += tl.histogram(ids, BINS)
    used = tl.where(bins < NUM_EXPERTS, (counts + (ROWS - 1)) // ROWS, 0)
    tile = tl.sum(tl.where(bins < expert, used, 0), 0)
    if expert < NUM_EXPERTS:
        count = tl.sum(tl.where(bins == expert, counts, 0), 0)
        for first in tl.range(0, count, ROWS * BINS):
            numbers = first // ROWS + bins
            mask = numbers * ROWS < count
            tl.store(tiles + (tile + numbers) * 2, tl.zeros([BINS], tl.int32) + expert, mask=mask)
            tl.store(tiles + (tile + numbers) * 2 + 1, tl.minimum(count - numbers * ROWS, ROWS), mask=mask)
        target = tile * ROWS
        for first in tl.range(0, num_pairs, CHUNK):
            ids = tl.load(chosen + first + at, mask=first + at < num_pairs, other=BINS - 1)
            is_own = ids == expert
            places = target + tl.cumsum(is_own.to(tl.int32), 0) - 1
            tl.store(pairs + places, first + at, mask=is_own)
            target += tl.sum(is_own.to(tl.int32), 0)
    else:
        for first in tl.range(tile, num_tiles, BINS):
            numbers = first + bins
            tl.store(tiles + numbers * 2 + 1, tl.zeros([BINS], tl.int32), mask=numbers < num_tiles)


@kernel
def _tile_of(
    place: tl.tensor,
    first: tl.tensor,
    in_outputs: tl.tensor,
    NUM_INPUTS: tl.constexpr,
    WIDTH: tl.constexpr,
    EVEN: tl.constexpr,
) -> tl.tensor:
    """WIDTH inputs of some rows from ``first`` on; EVEN: no row and no input is beyond the end."""
    if EVEN:
        return tl.load(place + first)
    inside = (first + tl.arange(0, WIDTH) < NUM_INPUTS)[None, :]
    return tl.load(place + first, mask=in_outputs[:, None] & inside, other=0.0)


@kernel
def expert_gate_up(
    x: tl.tensor,
    weight: tl.tensor,
    pairs: tl.tensor,
    tiles: tl.tensor,
    out: tl.tensor,
    NUM_INPUTS: tl.constexpr,
    NUM_OUTPUTS: tl.constexpr,
    PER_TOKEN: tl.constexpr,
    ROWS: tl.constexpr,
    OUTPUTS: tl.constexpr,
    WIDTH: tl.constexpr,
    STAGES: tl.constexpr,
    EVEN: tl.constexpr,
    PRECISION: tl.constexpr,
    PDL: tl.constexpr,
    LIMIT: tl.constexpr = 0.0,
    SLOPE: tl.constexpr = 1.0,
    bias: tl.tensor = None,
) -> None:
    """out[pair] = silu(x upper^T) * (x lower^T) with the pair's row and expert.

    ``weight`` [expert, 2 NUM_OUTPUTS, NUM_INPUTS]: the upper half of an expert is its gate; ``bias`` is in the same
    order. LIMIT: both are clamped to it and 1 is added to the lower half; 0: neither. SLOPE: the gate is multiplied by
    it within its sigmoid.
    """
    tile = tl.program_id(1)
    if PDL:
        gdc_launch_dependents()
        gdc_wait()
    count = tl.load(tiles + tile * 2 + 1)
    if count > 0:
        expert = tl.load(tiles + tile * 2).to(tl.int64)
        at = tl.arange(0, WIDTH)
        is_own = tl.arange(0, ROWS) < count
        pair = tl.load(pairs + tile * ROWS + tl.arange(0, ROWS), mask=is_own, other=0)
        outputs = tl.program_id(0) * OUTPUTS + tl.arange(0, OUTPUTS)
        in_outputs = outputs < NUM_OUTPUTS
        rows = x + (pair // PER_TOKEN).to(tl.int64)[:, None] * NUM_INPUTS + at[None, :]
        upper = weight + (expert * (2 * NUM_OUTPUTS) + outputs)[:, None] * NUM_INPUTS + at[None, :]
        lower = upper + NUM_OUTPUTS * NUM_INPUTS
        uppers = tl.zeros([OUTPUTS, ROWS], tl.float32)
        lowers = tl.zeros([OUTPUTS, ROWS], tl.float32)
        for first in tl.range(0, NUM_INPUTS, WIDTH, num_stages=STAGES):
            values = _tile_of(rows, first, is_own, NUM_INPUTS, WIDTH, EVEN).T
            above = _tile_of(upper, first, in_outputs, NUM_INPUTS, WIDTH, EVEN)
            uppers = tl.dot(above, values, uppers, input_precision=PRECISION)
            below = _tile_of(lower, first, in_outputs, NUM_INPUTS, WIDTH, EVEN)
            lowers = tl.dot(below, values, lowers, input_precision=PRECISION)
        if bias is not None:
            own = bias + expert * (2 * NUM_OUTPUTS) + outputs
            uppers += tl.load(own, mask=in_outputs, other=0.0).to(tl.float32)[:, None]
            lowers += tl.load(own + NUM_OUTPUTS, mask=in_outputs, other=0.0).to(tl.float32)[:, None]
        if LIMIT > 0:
            uppers = tl.minimum(uppers, LIMIT)
            lowers = tl.minimum(tl.maximum(lowers, -LIMIT), LIMIT) + 1.0
        result = uppers * tl.sigmoid(uppers * SLOPE) * lowers
        place = out + pair.to(tl.int64)[:, None] * NUM_OUTPUTS + outputs[None, :]
        mask = is_own[:, None] & in_outputs[None, :]
        tl.store(place, tl.trans(result).to(out.dtype.element_ty), mask=mask)


@kernel
def expert_down(
    x: tl.tensor,
    weight: tl.tensor,
    shares: tl.tensor,
    pairs: tl.tensor,
    tiles: tl.tensor,
    out: tl.tensor,
    num_rows: tl.tensor,
    NUM_INPUTS: tl.constexpr,
    NUM_OUTPUTS: tl.constexpr,
    PER_TOKEN: tl.constexpr,
    ROWS: tl.constexpr,
    OUTPUTS: tl.constexpr,
    WIDTH: tl.constexpr,
    STAGES: tl.constexpr,
    EVEN: tl.constexpr,
    PRECISION: tl.constexpr,
    PDL: tl.constexpr,
    bias: tl.tensor = None,
) -> None:
    """out[place of the expert among the row's, row] = the expert's share times x[pair] weight^T: partial sums of rows.

    ``weight`` [expert, NUM_OUTPUTS, NUM_INPUTS], ``bias`` [expert, NUM_OUTPUTS].
    """
    tile = tl.program_id(1)
    if PDL:
        gdc_launch_dependents()
        gdc_wait()
    count = tl.load(tiles + tile * 2 + 1)
    if count > 0:
        expert = tl.load(tiles + tile * 2).to(tl.int64)
        at = tl.arange(0, WIDTH)
        is_own = tl.arange(0, ROWS) < count
        pair = tl.load(pairs + tile * ROWS + tl.arange(0, ROWS), mask=is_own, other=0)
        outputs = tl.program_id(0) * OUTPUTS + tl.arange(0, OUTPUTS)
        in_outputs = outputs < NUM_OUTPUTS
        rows = x + pair.to(tl.int64)[:, None] * NUM_INPUTS + at[None, :]
        own = weight + (expert * NUM_OUTPUTS + outputs)[:, None] * NUM_INPUTS + at[None, :]
        sums = tl.zeros([OUTPUTS, ROWS], tl.float32)
        for first in tl.range(0, NUM_INPUTS, WIDTH, num_stages=STAGES):
            values = _tile_of(rows, first, is_own, NUM_INPUTS, WIDTH, EVEN).T
            weights = _tile_of(own, first, in_outputs, NUM_INPUTS, WIDTH, EVEN)
            sums = tl.dot(weights, values, sums, input_precision=PRECISION)
        if bias is not None:
            place = bias + expert * NUM_OUTPUTS + outputs
            sums += tl.load(place, mask=in_outputs, other=0.0).to(tl.float32)[:, None]
        share = tl.load(shares + pair, mask=is_own, other=0.0)
        target = (pair % PER_TOKEN).to(tl.int64) * num_rows + pair // PER_TOKEN
        place = out + target[:, None] * NUM_OUTPUTS + outputs[None, :]
        mask = is_own[:, None] & in_outputs[None, :]
        tl.store(place, tl.trans(sums * share[None, :]).to(out.dtype.element_ty), mask=mask)
