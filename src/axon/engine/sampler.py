"""Chooses the next token from logits. A choice is a function of its own row and draw alone.

Greedy rows are chosen together; the others one by one in float64, so that neighbours cannot touch them.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from axon.engine.batch import Draw
from axon.engine.uniform import uniform

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.intp]

_FIRST_SORTED = 1024  # the nucleus is nearly always within this many tokens; a full sort of a vocabulary is slow


def sample(logits: torch.Tensor, draws: Sequence[Draw]) -> list[int]:
    """Returns a token id for each row of logits."""
    tokens: list[int] = logits.argmax(dim=-1).tolist()
    for row, draw in enumerate(draws):
        if draw.sampling.temperature > 0:
            tokens[row] = choose(logits[row].double().numpy(), draw)
    return tokens


def choose(logits: Floats, draw: Draw) -> int:
    """Draws from the softmax at the draw's temperature, cut to its top k and then to its nucleus."""
    sampling = draw.sampling
    weights = np.exp((logits - logits.max()) / sampling.temperature)
    ids: Ids = np.arange(len(weights))
    if 0 < sampling.top_k < len(ids):
        ids = _largest(weights, sampling.top_k)
    if sampling.top_p < 1:
        ids = _nucleus(weights, ids, sampling.top_p)
    cumulated = np.cumsum(weights[ids])
    target = uniform(draw.seed, draw.choice, draw.position) * cumulated[-1]
    return int(ids[np.searchsorted(cumulated, target, side="right")])


def _largest(weights: Floats, count: int) -> Ids:
    """The ids of the ``count`` largest weights, largest first, lower id first among equals."""
    threshold = np.partition(weights, -count)[-count]
    candidates = np.flatnonzero(weights >= threshold)
    order = np.lexsort((candidates, -weights[candidates]))
    return candidates[order[:count]]


def _nucleus(weights: Floats, ids: Ids, top_p: float) -> Ids:
    """The fewest of ``ids``, most likely first, that hold ``top_p`` of their mass; at least one."""
    wanted = top_p * weights[ids].sum()
    for count in (min(_FIRST_SORTED, len(ids)), len(ids)):
        ranked = ids[_largest(weights[ids], count)]
        cumulated = np.cumsum(weights[ranked])
        if cumulated[-1] >= wanted:
            break
    return ranked[: int(np.searchsorted(cumulated, wanted)) + 1]
