"""Chooses tokens on the device as ``sample.sampler`` does: the first id whose cumulative weight exceeds a number.

The vocabulary is cut into sections: their sums are cumulated first, then the weights within one. An inverse
temperature of 0 is greedy: the most likely token, the lowest id among equals. A logit of -inf is never chosen.
"""

import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from axon.engine.cuda.jit import kernel

NUM_SECTIONS = 64


@kernel
def sum_sections(
    logits: tl.tensor,
    vocab_size: tl.tensor,
    inverse_temperatures: tl.tensor,
    highest: tl.tensor,
    sums: tl.tensor,
    NUM_SECTIONS: tl.constexpr,
    SECTION: tl.constexpr,
    WIDTH: tl.constexpr,
    PDL: tl.constexpr,
) -> None:
    """The highest logit of each section, and the sum of its exponentials relative to that."""
    row = tl.program_id(0)
    section = tl.program_id(1)
    if PDL:
        gdc_launch_dependents()
        gdc_wait()
    inverse = tl.load(inverse_temperatures + row) * 1.4426950408889634
    at = tl.arange(0, WIDTH)
    id = section * SECTION + at
    mask = (at < SECTION) & (id < vocab_size)
    scores = tl.load(logits + row.to(tl.int64) * vocab_size + id, mask=mask, other=float("-inf")).to(tl.float32)
    top = tl.max(scores, 0)
    weights = tl.where(mask, tl.exp2((scores - tl.maximum(top, -1e30)) * inverse), 0.0)
    tl.store(highest + row * NUM_SECTIONS + section, top)
    tl.store(sums + row * NUM_SECTIONS + section, tl.sum(weights, 0))


@kernel
def draw(
    logits: tl.tensor,
    vocab_size: tl.tensor,
    inverse_temperatures: tl.tensor,
    numbers: tl.tensor,
    highest: tl.tensor,
    sums: tl.tensor,
    sampled: tl.tensor,
    NUM_SECTIONS: tl.constexpr,
    SECTION: tl.constexpr,
    WIDTH: tl.constexpr,
    PDL: tl.constexpr,
) -> None:
    """Writes each row's token, the one that its number in [0, 1) falls on."""
    row = tl.program_id(0)
    if PDL:
        gdc_launch_dependents()
        gdc_wait()
    inverse = tl.load(inverse_temperatures + row) * 1.4426950408889634
    sections = tl.arange(0, NUM_SECTIONS)
    tops = tl.load(highest + row * NUM_SECTIONS + sections)
    top = tl.max(tops, 0)
    at = tl.arange(0, WIDTH)
    if inverse == 0:
        section = tl.min(tl.where(tops == top, sections, NUM_SECTIONS), 0)
        id = section * SECTION + at
        mask = (at < SECTION) & (id < vocab_size)
        scores = tl.load(logits + row.to(tl.int64) * vocab_size + id, mask=mask, other=float("-inf")).to(tl.float32)
        token = tl.min(tl.where(mask & (scores == top), id, vocab_size - 1), 0)
    else:
        masses = tl.load(sums + row * NUM_SECTIONS + sections) * tl.exp2((tl.maximum(tops, -1e30) - top) * inverse)
        cumulated = tl.cumsum(masses.to(tl.float64), 0)
        total = tl.max(cumulated, 0)
        target = tl.minimum(tl.load(numbers + row) * total, total * (1 - 1e-15))
        section = tl.minimum(tl.sum((cumulated <= target).to(tl.int32), 0), NUM_SECTIONS - 1)
        before = tl.max(tl.where(sections < section, cumulated, 0.0), 0)
        id = section * SECTION + at
        mask = (at < SECTION) & (id < vocab_size)
        scores = tl.load(logits + row.to(tl.int64) * vocab_size + id, mask=mask, other=float("-inf")).to(tl.float32)
        weights = tl.where(mask, tl.exp2((scores - top) * inverse), 0.0)
        inside = tl.cumsum(weights.to(tl.float64), 0)
        # A section's sum may have rounded to more than its weights cumulate to.
        rest = tl.minimum(target - before, tl.max(inside, 0) * (1 - 1e-15))
        offset = tl.sum((mask & (inside <= rest)).to(tl.int32), 0)
        token = tl.minimum(section * SECTION + offset, vocab_size - 1)
    tl.store(sampled + row, token)
