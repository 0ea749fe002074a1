"""Draws on the device from rows truncated by top-k, top-p and min-p, as ``axon.engine.sample.truncate`` does.

The tokens that stay are a prefix of the row's ranking, found without sorting: a binary search over the bits of scores
finds that of the last rank, and of the ids with this very score the lowest stay.
"""

import triton.language as tl

from axon.engine.cuda.jit import kernel


@kernel
def _ordered(scores: tl.tensor) -> tl.tensor:
    """Integers in the order of the scores."""
    bits = scores.to(tl.float32).to(tl.int32, bitcast=True)
    return tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


@kernel
def _score(key: tl.tensor) -> tl.tensor:
    bits = tl.where(key < 0, key ^ 0x7FFFFFFF, key)
    return bits.to(tl.float32, bitcast=True)


@kernel
def _head(
    row: tl.tensor, key: tl.tensor, top: tl.tensor, inverse: tl.tensor, vocab_size: tl.tensor, WIDTH: tl.constexpr
) -> tl.tensor:
    """Number of scores that reach the key, and the sum of their weights."""
    count = tl.zeros([WIDTH], tl.int32)
    mass = tl.zeros([WIDTH], tl.float64)
    for first in tl.range(0, vocab_size, WIDTH):
        id = first + tl.arange(0, WIDTH)
        scores = tl.load(row + id, mask=id < vocab_size, other=float("-inf")).to(tl.float32)
        reached = (id < vocab_size) & (_ordered(scores) >= key)
        count += reached.to(tl.int32)
        mass += tl.where(reached, tl.exp2((scores - top) * inverse), 0.0).to(tl.float64)
    return tl.sum(count, 0), tl.sum(mass, 0)


@kernel
def draw_truncated(
    logits: tl.tensor,
    vocab_size: tl.tensor,
    rows: tl.tensor,
    top_ks: tl.tensor,
    top_ps: tl.tensor,
    min_ps: tl.tensor,
    inverse_temperatures: tl.tensor,
    numbers: tl.tensor,
    sampled: tl.tensor,
    WIDTH: tl.constexpr,
) -> None:
    """Writes the token of each of ``rows``.

    ``top_ks``, ``top_ps`` and ``min_ps`` are indexed like ``rows``; temperatures and numbers by row of the batch.
    """
    program = tl.program_id(0)
    index = tl.load(rows + program)
    top_k = tl.load(top_ks + program)
    top_p = tl.load(top_ps + program)
    min_p = tl.load(min_ps + program)
    inverse = tl.load(inverse_temperatures + index) * 1.4426950408889634
    row = logits + index.to(tl.int64) * vocab_size
    at = tl.arange(0, WIDTH)

    tops = tl.full([WIDTH], float("-inf"), tl.float32)
    for first in tl.range(0, vocab_size, WIDTH):
        id = first + at
        tops = tl.maximum(tops, tl.load(row + id, mask=id < vocab_size, other=float("-inf")).to(tl.float32))
    top = tl.max(tops, 0)

    # The last score of top-k and min-p together; as many of its equals stay as make up the number.
    wanted = tl.minimum(tl.where(top_k > 0, top_k, vocab_size), vocab_size)
    if min_p > 0:
        likely = tl.zeros([WIDTH], tl.int32)
        for first in tl.range(0, vocab_size, WIDTH):
            id = first + at
            scores = tl.load(row + id, mask=id < vocab_size, other=float("-inf")).to(tl.float32)
            likely += ((id < vocab_size) & (tl.exp2((scores - top) * inverse) >= min_p)).to(tl.int32)
        wanted = tl.maximum(1, tl.minimum(wanted, tl.sum(likely, 0)))
    last = _ordered(float("-inf") + tl.zeros([1], tl.float32))
    last = tl.sum(last, 0)
    if wanted < vocab_size:
        low = last.to(tl.int64)  # reached by at least the wanted number; the one above ``high`` is not
        high = tl.sum(_ordered(top + tl.zeros([1], tl.float32)), 0).to(tl.int64)
        while low < high:
            middle = (low + high + 1) >> 1
            count, mass = _head(row, middle.to(tl.int32), top, inverse, vocab_size, WIDTH)
            if count >= wanted:
                low = middle
            else:
                high = middle - 1
        last = low.to(tl.int32)
    above, mass_above = _head(row, last + 1, top, inverse, vocab_size, WIDTH)
    equals = wanted - above
    weight = tl.exp2((_score(last) - top) * inverse).to(tl.float64)
    total = mass_above + tl.where(equals > 0, equals.to(tl.float64) * weight, 0.0)

    if top_p < 1:
        target = top_p.to(tl.float64) * total
        low = last.to(tl.int64)
        high = tl.sum(_ordered(top + tl.zeros([1], tl.float32)), 0).to(tl.int64)
        while low < high:
            middle = (low + high + 1) >> 1
            count, mass = _head(row, middle.to(tl.int32), top, inverse, vocab_size, WIDTH)
            if mass >= target:
                low = middle
            else:
                high = middle - 1
        key = low.to(tl.int32)
        above, mass_above = _head(row, key + 1, top, inverse, vocab_size, WIDTH)
        weight = tl.exp2((_score(key) - top) * inverse).to(tl.float64)
        needed = tl.maximum(tl.ceil((target - mass_above) / tl.maximum(weight, 1e-300)), 1.0)
        most = tl.where(key == last, equals, vocab_size)
        equals = tl.minimum(needed, most.to(tl.float64)).to(tl.int32)
        last = key
        total = mass_above + equals.to(tl.float64) * weight

    target = tl.minimum(tl.load(numbers + index) * total, total * (1 - 1e-15))
    cumulated = tl.zeros([1], tl.float64)
    num_equal = tl.zeros([1], tl.int32)
    token = tl.zeros([1], tl.int32)
    for first in tl.range(0, vocab_size, WIDTH):
        id = first + at
        scores = tl.load(row + id, mask=id < vocab_size, other=float("-inf")).to(tl.float32)
        keys = _ordered(scores)
        equal = (id < vocab_size) & (keys == last)
        rank = num_equal + tl.cumsum(equal.to(tl.int32), 0)
        kept = (id < vocab_size) & ((keys > last) | (equal & (rank <= equals)))
        weights = tl.where(kept, tl.exp2((scores - top) * inverse), 0.0).to(tl.float64)
        running = cumulated + tl.cumsum(weights, 0)
        # The last kept id whose weights before it are not over the target: where the target falls.
        reached = kept & (weights > 0) & (running - weights <= target)
        token = tl.maximum(token, tl.max(tl.where(reached, id, 0), 0))
        cumulated += tl.sum(weights, 0)
        num_equal += tl.sum(equal.to(tl.int32), 0)
    tl.store(sampled + index + tl.arange(0, 1), token)
