"""Matrix products of rows with weights in four bits, which are unpacked on the way; see ``packed``.

The numbers of a group, less their zero point, are small integers, which bfloat16 holds exactly: their products with the
rows are added up as they are, and the sum is multiplied by the group's scale. Many rows meet a copy of the matrix in
bfloat16 instead, which ``unpack`` makes for the one product.
"""

import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from axon.engine.cuda.jit import kernel


@kernel
def _scale_of(steps: tl.tensor, FLOAT16: tl.constexpr) -> tl.tensor:
    """The scales in the lower halves of int32s, in float32."""
    if FLOAT16:
        return (steps & 0xFFFF).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)
    return (steps << 16).to(tl.float32, bitcast=True)


@kernel
def _lifted_zero_of(steps: tl.tensor) -> tl.tensor:
    """128 + the zero points in the upper halves of int32s, in float32."""
    return ((steps >> 16) << 16).to(tl.float32, bitcast=True)


@kernel
def _four_tiles(packed: tl.tensor) -> tl.tensor:
    """128 + the numbers of each quarter, in bfloat16: four bits below those of 128 are 128 + the number."""
    return tl.inline_asm_elementwise(
        """
        {
        .reg .b32 bits, lift, moved;
        mov.b32 bits, 0x000f000f;
        mov.b32 lift, 0x43004300;
        lop3.b32 $0, $4, bits, lift, 0xea;
        shr.u32 moved, $4, 4;
        lop3.b32 $1, moved, bits, lift, 0xea;
        shr.u32 moved, $4, 8;
        lop3.b32 $2, moved, bits, lift, 0xea;
        shr.u32 moved, $4, 12;
        lop3.b32 $3, moved, bits, lift, 0xea;
        }
        """,
        "=&r,=&r,=&r,=&r,r",
        [packed],
        dtype=(tl.bfloat16, tl.bfloat16, tl.bfloat16, tl.bfloat16),
        is_pure=True,
        pack=2,
    )


@kernel
def _less(lifted: tl.tensor, zeros: tl.tensor) -> tl.tensor:
    """Numbers less their zero points, both of which come with 128 added."""
    return tl.inline_asm_elementwise(
        "sub.bf16x2 $0, $1, $2;",
        "=r,r,r",
        [lifted, tl.broadcast_to(zeros.to(tl.bfloat16)[:, None], lifted.shape)],
        dtype=tl.bfloat16,
        is_pure=True,
        pack=2,
    )


@kernel
def _plain_tile(packed: tl.tensor, PLACE: tl.constexpr) -> tl.tensor:
    """128 + the numbers of one quarter, in float32."""
    return ((packed >> (4 * PLACE)) & 15).to(tl.float32) + 128.0


@kernel
def few_rows_packed(
    x: tl.tensor,
    numbers: tl.tensor,
    steps: tl.tensor,
    out: tl.tensor,
    num_rows: tl.tensor,
    num_outputs: tl.tensor,
    NUM_INPUTS: tl.constexpr,
    GROUP: tl.constexpr,
    FLOAT16: tl.constexpr,
    ROWS: tl.constexpr,
    OUTPUTS: tl.constexpr,
    WIDTH: tl.constexpr,
    NUM_PARTS: tl.constexpr,
    STAGES: tl.constexpr,
    ASM: tl.constexpr,
    PDL: tl.constexpr,
) -> None:
    """out[part] = x weight^T over the part's share of the inputs; the first three are tensor descriptors.

    WIDTH: int16s of a tile, which must divide a group, so that each quarter of a tile has one scale for an output.
    ASM: two int16s at a time become eight numbers by a few instructions; else by plain ones, which any device has.
    """
    tile = tl.program_id(0)
    part = tl.program_id(1)
    row_tile = tl.program_id(2)
    QUARTER: tl.constexpr = NUM_INPUTS // 4
    SHARE: tl.constexpr = QUARTER // NUM_PARTS
    start = part * SHARE
    if PDL:
        gdc_launch_dependents()
        gdc_wait()
    sums = tl.zeros([OUTPUTS, ROWS], tl.float32)
    for first in tl.range(0, SHARE, WIDTH, num_stages=STAGES):
        at = start + first
        packed = numbers.load([tile * OUTPUTS, at])
        if ASM:
            lifted = _four_tiles(packed)
        for place in tl.static_range(4):
            step = steps.load([(place * QUARTER + at) // GROUP, tile * OUTPUTS]).reshape([OUTPUTS])
            values = x.load([row_tile * ROWS, place * QUARTER + at])
            if ASM:
                exact = _less(lifted[place], _lifted_zero_of(step))
            else:
                exact = (_plain_tile(packed, place) - _lifted_zero_of(step)[:, None]).to(values.dtype)
            sums += tl.dot(exact, values.T) * _scale_of(step, FLOAT16)[:, None]
    rows = row_tile * ROWS + tl.arange(0, ROWS)
    outputs = tile * OUTPUTS + tl.arange(0, OUTPUTS)
    place = out + part.to(tl.int64) * num_rows * num_outputs + rows[:, None] * num_outputs + outputs[None, :]
    mask = (rows < num_rows)[:, None] & (outputs < num_outputs)[None, :]
    tl.store(place, tl.trans(sums).to(out.dtype.element_ty), mask=mask)


@kernel
def unpack(
    numbers: tl.tensor,
    steps: tl.tensor,
    out: tl.tensor,
    num_outputs: tl.tensor,
    NUM_INPUTS: tl.constexpr,
    GROUP: tl.constexpr,
    FLOAT16: tl.constexpr,
    OUTPUTS: tl.constexpr,
    WIDTH: tl.constexpr,
) -> None:
    """Writes the matrix [output, input] that the numbers stand for; WIDTH must divide a group."""
    QUARTER: tl.constexpr = NUM_INPUTS // 4
    outputs = tl.program_id(0) * OUTPUTS + tl.arange(0, OUTPUTS)
    at = tl.program_id(1) * WIDTH
    columns = at + tl.arange(0, WIDTH)
    mask = (outputs < num_outputs)[:, None]
    rows = outputs[:, None].to(tl.int64)
    packed = tl.load(numbers + rows * QUARTER + columns[None, :], mask=mask, other=0)
    for place in tl.static_range(4):
        group = (place * QUARTER + at) // GROUP
        step = tl.load(steps + group * num_outputs + outputs, mask=outputs < num_outputs, other=0)
        wide = (_plain_tile(packed, place) - _lifted_zero_of(step)[:, None]) * _scale_of(step, FLOAT16)[:, None]
        to = out + rows * NUM_INPUTS + place * QUARTER + columns[None, :]
        tl.store(to, wide.to(out.dtype.element_ty), mask=mask)
