"""Chooses tokens from logits: each by its own row and draw alone. Knows no model and no torch.

A runner makes one call:

    sample(logits, batch.draws) -> list[Drawn]

``logits`` are float32 numbers [rows, vocabulary], a numpy array or a torch tensor on the CPU, one row for each draw of
the batch in order; they are not changed. A runner returns the list as it is.

Greedy rows take one argmax; rows with a temperature alone are not sorted. The others are changed in this order: logit
bias, repetition, frequency and presence penalties, a grammar's mask, banned end tokens; then temperature, min-p and
top-k, top-p.
Log probabilities are the model's own: those of the row as it came.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from axon.engine.batch import Draw, Drawn
from axon.engine.sample.adjust import adjust, is_adjusted
from axon.engine.sample.truncate import BLOCK, is_truncated, kept_ids, rank
from axon.engine.sample.uniform import uniform

Floats = npt.NDArray[np.float64]


def sample(logits: Any, draws: Sequence[Draw]) -> list[Drawn]:
    """Returns the token of each row, with log probabilities where the draw asks for them."""
    rows = np.asarray(logits)
    assert len(rows) == len(draws), "a row for each draw"
    tokens: list[int] = rows.argmax(axis=1).tolist()  # the first among equals, which is the lowest id
    altered = [index for index, draw in enumerate(draws) if draw.sampling.temperature > 0 or is_adjusted(draw)]
    if altered:
        chosen = _choose(_widen(rows, altered), [draws[index] for index in altered])
        for index, token in zip(altered, chosen, strict=True):
            tokens[index] = token
    drawn = [Drawn(token) for token in tokens]
    asked = [index for index, draw in enumerate(draws) if draw.sampling.logprobs is not None]
    if asked:
        for index, scores in zip(asked, _widen(rows, asked), strict=True):
            draw = draws[index]
            token = tokens[index] if draw.given is None else draw.given
            ranking = None if draw.given is None else _rank_of(scores, token)
            drawn[index] = _with_logprobs(scores, token, draw.sampling.logprobs or 0, ranking)
    return drawn


def _widen(rows: npt.NDArray[Any], indices: list[int]) -> Floats:
    """A copy of some rows in float64, padded with -inf: tokens that are never chosen."""
    # SIMD code computes the tail of an array differently from the rest, sometimes to another last bit. Rows padded to
    # whole blocks have no tail, wherever they stand in a batch.
    width = -(-rows.shape[1] // BLOCK) * BLOCK
    wide = np.full((len(indices), width), -np.inf)
    wide[:, : rows.shape[1]] = rows[indices]
    return wide


def _choose(scores: Floats, draws: list[Draw]) -> list[int]:
    adjust(scores, draws)
    tokens: list[int] = scores.argmax(axis=1).tolist()
    warm = [index for index, draw in enumerate(draws) if draw.sampling.temperature > 0]
    if warm:
        for index, token in zip(warm, _draw(scores[warm], [draws[index] for index in warm]), strict=True):
            tokens[index] = token
    return tokens


def _draw(scores: Floats, draws: list[Draw]) -> list[int]:
    """Inverse transform sampling from each row's softmax: the first id whose cumulative weight exceeds the number."""
    temperatures = np.array([[draw.sampling.temperature] for draw in draws])
    with np.errstate(over="ignore"):  # a difference over a tiny temperature may overflow to -inf, which is right
        weights = np.exp((scores - scores.max(axis=1, keepdims=True)) / temperatures)
    numbers = np.array([uniform(draw.seed, draw.choice, draw.position) for draw in draws])
    tokens = _find(weights, numbers)
    for row, draw in enumerate(draws):
        if is_truncated(draw.sampling):
            ids = kept_ids(scores[row], weights[row], draw.sampling)
            cumulated = weights[row, ids].cumsum()
            tokens[row] = int(ids[np.searchsorted(cumulated, _below(numbers[row], cumulated[-1]), side="right")])
    return tokens


def _find(weights: Floats, numbers: Floats) -> list[int]:
    """Cumulates the sums of blocks and then within one block: cumulating whole rows would take longer than exp."""
    rows = np.arange(len(weights))
    blocks = weights.reshape(len(weights), -1, BLOCK)
    cumulated = blocks.sum(axis=2).cumsum(axis=1)
    targets = _below(numbers, cumulated[:, -1])
    index = (cumulated <= targets[:, None]).sum(axis=1)
    rest = targets - np.where(index > 0, cumulated[rows, index - 1], 0.0)
    block = blocks[rows, index]
    inside = (block.cumsum(axis=1) <= rest[:, None]).sum(axis=1)
    last = BLOCK - 1 - (block[:, ::-1] > 0).argmax(axis=1)  # a block's sum may round above its cumulative sum
    tokens: list[int] = (index * BLOCK + np.minimum(inside, last)).tolist()
    return tokens


def _below(numbers: Any, totals: Any) -> Any:
    """The numbers times the totals, always less than the totals."""
    return np.minimum(numbers * totals, np.nextafter(totals, 0.0))


def _rank_of(scores: Floats, token: int) -> int:
    """The token's rank, from 1: the highest score first, the lower id first among equals."""
    own = scores[token]
    return 1 + int((scores[:token] >= own).sum()) + int((scores[token + 1 :] > own).sum())


def _with_logprobs(scores: Floats, token: int, count: int, ranking: int | None) -> Drawn:
    shifted = scores - scores.max()
    total = math.log(np.exp(shifted).sum())
    top = tuple((int(id), float(shifted[id]) - total) for id in rank(scores, count)[:count]) if count else ()
    return Drawn(token, float(shifted[token]) - total, top, ranking)
