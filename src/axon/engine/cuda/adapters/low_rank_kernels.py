"""LoRA adapters of many rows at once: two small products beside a product of the model, for each row with its adapter.

The rows of a step are sorted by adapter into tiles of at most ROWS. ``tiles`` [tile, 2 + NUM_PAGES] has the place of
a tile's first row in ``rows``, its number of rows (0: nothing to do), and the pages of its adapter (-1: none). A page
holds RANK ranks of all matrices of an adapter, see ``adapter_pages``: for each product of a layer the first matrices
[module, RANK, input], and behind them the second ones [output, RANK].
"""

import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from axon.engine.cuda.jit import kernel


@kernel
def shrink(
    x: tl.tensor,
    pool: tl.tensor,
    page_size: tl.tensor,
    offset: tl.tensor,
    tiles: tl.tensor,
    rows: tl.tensor,
    out: tl.tensor,
    num_rows: tl.tensor,
    NUM_INPUTS: tl.constexpr,
    NUM_MODULES: tl.constexpr,
    NUM_PAGES: tl.constexpr,
    RANK: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    SHARE: tl.constexpr,
    PRECISION: tl.constexpr,
    PDL: tl.constexpr,
) -> None:
    """out[part, place, module, page, rank] = x first^T over the part's SHARE of the inputs, in float32.

    If a program has one step, it loads its matrix before it waits for the kernel before it: no kernel writes that.
    """
    tile = tiles + tl.program_id(0) * (2 + NUM_PAGES)
    module = tl.program_id(1) // NUM_PAGES
    place = tl.program_id(1) % NUM_PAGES
    part = tl.program_id(2)
    if PDL:
        gdc_launch_dependents()
    first_row = tl.load(tile)
    count = tl.load(tile + 1)
    page = tl.load(tile + 2 + place)
    is_used = (count > 0) & (page >= 0)
    at = tl.arange(0, WIDTH)
    ranks = tl.arange(0, RANK)
    row = tl.arange(0, ROWS)
    inputs = part * SHARE + at
    matrix = pool + page.to(tl.int64) * page_size + offset + (module * RANK + ranks[:, None]) * NUM_INPUTS
    if SHARE == WIDTH:
        early = tl.load(matrix + inputs[None, :], mask=is_used & (inputs < NUM_INPUTS)[None, :], other=0.0)
    if PDL:
        gdc_wait()
    if is_used:
        own = tl.load(rows + first_row + row, mask=row < count, other=0).to(tl.int64)
        source = x + own[:, None] * NUM_INPUTS
        is_own = (row < count)[:, None]
        sums = tl.zeros([ROWS, RANK], tl.float32)
        if SHARE == WIDTH:
            values = tl.load(source + inputs[None, :], mask=is_own & (inputs < NUM_INPUTS)[None, :], other=0.0)
            sums = tl.dot(values, early.T, sums, input_precision=PRECISION)
        else:
            for first in tl.range(0, SHARE, WIDTH):
                inside = (first + inputs < NUM_INPUTS)[None, :]
                weights = tl.load(matrix + first + inputs[None, :], mask=inside, other=0.0)
                values = tl.load(source + first + inputs[None, :], mask=is_own & inside, other=0.0)
                sums = tl.dot(values, weights.T, sums, input_precision=PRECISION)
        columns = (module * NUM_PAGES + place) * RANK + ranks
        target = (part * num_rows + first_row + row).to(tl.int64)[:, None] * (NUM_MODULES * NUM_PAGES * RANK)
        tl.store(out + target + columns[None, :], sums, mask=is_own)


@kernel
def expand(
    inner: tl.tensor,
    pool: tl.tensor,
    page_size: tl.tensor,
    offset: tl.tensor,
    tiles: tl.tensor,
    rows: tl.tensor,
    out: tl.tensor,
    num_rows: tl.tensor,
    NUM_OUTPUTS: tl.constexpr,
    FIRST_END: tl.constexpr,
    SECOND_END: tl.constexpr,
    NUM_MODULES: tl.constexpr,
    NUM_PAGES: tl.constexpr,
    RANK: tl.constexpr,
    NUM_PARTS: tl.constexpr,
    ROWS: tl.constexpr,
    OUTPUTS: tl.constexpr,
    PRECISION: tl.constexpr,
    PDL: tl.constexpr,
) -> None:
    """Adds the second products to the rows' outputs; ``offset`` is that of the second matrices.

    FIRST_END and SECOND_END: where the outputs of the first module end, and of the second.
    """
    tile = tiles + tl.program_id(1) * (2 + NUM_PAGES)
    start = tl.program_id(0) * OUTPUTS
    outputs = start + tl.arange(0, OUTPUTS)
    row = tl.arange(0, ROWS)
    ranks = tl.arange(0, RANK)
    if PDL:
        gdc_launch_dependents()
        gdc_wait()
    count = tl.load(tile + 1)
    if count > 0:
        first_row = tl.load(tile)
        is_own = (row < count)[:, None]
        sums = tl.zeros([ROWS, OUTPUTS], tl.float32)
        for module in tl.static_range(NUM_MODULES):
            module_start = 0 if module == 0 else FIRST_END if module == 1 else SECOND_END
            module_end = FIRST_END if module == 0 else SECOND_END if module == 1 else NUM_OUTPUTS
            if (start < module_end) & (start + OUTPUTS > module_start):
                in_module = (outputs >= module_start) & (outputs < module_end)
                for place in tl.static_range(NUM_PAGES):
                    page = tl.load(tile + 2 + place)
                    if page >= 0:
                        columns = (module * NUM_PAGES + place) * RANK + ranks
                        values = tl.zeros([ROWS, RANK], tl.float32)
                        for part in tl.static_range(NUM_PARTS):
                            source = (part * num_rows + first_row + row).to(tl.int64)[:, None]
                            where = inner + source * (NUM_MODULES * NUM_PAGES * RANK) + columns[None, :]
                            values += tl.load(where, mask=is_own, other=0.0)
                        matrix = pool + page.to(tl.int64) * page_size + offset + outputs[:, None] * RANK
                        weights = tl.load(matrix + ranks[None, :], mask=in_module[:, None], other=0.0)
                        sums = tl.dot(values.to(weights.dtype), weights.T, sums, input_precision=PRECISION)
        own = tl.load(rows + first_row + row, mask=row < count, other=0).to(tl.int64)
        target = out + own[:, None] * NUM_OUTPUTS + outputs[None, :]
        mask = is_own & (outputs < NUM_OUTPUTS)[None, :]
        before = tl.load(target, mask=mask, other=0.0).to(tl.float32)
        tl.store(target, (before + sums).to(out.dtype.element_ty), mask=mask)
