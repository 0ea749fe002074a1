"""Truncates a distribution to its most likely tokens: top-k, top-p (nucleus), min-p. Draws nothing.

Each rule keeps a prefix of the row's ranking: the highest score first, the lower id first among equals. So all of them
together are one number: how many tokens stay.
"""

import numpy as np
import numpy.typing as npt

from axon.domain.sampling import Sampling

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.intp]

BLOCK = 64
"""Rows are padded to whole blocks of this many numbers."""
_FIRST_RANKED = (128, 512)  # a vocabulary is slow to sort, and what stays nearly always stands within its first few


def is_truncated(sampling: Sampling) -> bool:
    """Whether the sampling may exclude tokens."""
    return sampling.top_k > 0 or sampling.top_p < 1 or sampling.min_p > 0


def kept_ids(scores: Floats, weights: Floats, sampling: Sampling) -> Ids:
    """The ids that stay, in ascending order. ``weights`` are the exponentials of ``scores``, 1 at the highest."""
    for at_least in (*_FIRST_RANKED, len(scores)):
        ids = rank(scores, at_least)
        num_kept = _num_kept(weights[ids], weights, sampling)
        if num_kept <= len(ids):
            break
    return np.sort(ids[:num_kept])


def rank(scores: Floats, at_least: int) -> Ids:
    """A prefix of the ranking of at least ``at_least`` ids, usually not much longer."""
    tops = scores.reshape(-1, BLOCK).max(axis=1)
    if at_least > len(tops):
        return np.argsort(-scores, kind="stable")
    # At least ``at_least`` blocks reach this score, so at least as many ids do: nothing else needs sorting.
    ids = np.flatnonzero(scores >= np.partition(tops, -at_least)[-at_least])
    return ids[np.argsort(-scores[ids], kind="stable")]


def _num_kept(ranked: Floats, weights: Floats, sampling: Sampling) -> int:
    """Number of ids that stay; more than are ranked if those are too few to decide."""
    width, unknown = len(weights), len(weights) + 1
    num_kept = min(sampling.top_k or width, width)
    if sampling.min_p > 0:
        num_likely = int((ranked >= sampling.min_p).sum())
        if num_likely == len(ranked) < width:
            return unknown
        num_kept = max(1, min(num_kept, num_likely))
    if sampling.top_p < 1:
        if len(ranked) < num_kept < width:
            return unknown
        cumulated = ranked.cumsum()
        mass = weights.sum() if num_kept == width else cumulated[num_kept - 1]
        num_kept = min(num_kept, 1 + int(np.searchsorted(cumulated, sampling.top_p * mass)))
    return num_kept
