"""Adjusts logits before a token is chosen: bias, penalties, masks, bans. Each row is changed by its own draw alone."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from axon.engine.batch import Draw

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]


def is_adjusted(draw: Draw, *, but_mask: bool = False) -> bool:
    """Whether ``adjust`` would change the draw's row; ``but_mask``: by more than a grammar's mask."""
    is_masked = draw.mask is not None and not but_mask
    return bool(draw.sampling.logit_bias or draw.banned_ids or draw.sampling.penalises_output or is_masked)


def adjust(scores: Floats, draws: Sequence[Draw]) -> None:
    """Changes each row of ``scores`` in place as its draw asks."""
    _add_bias(scores, draws)
    _penalise_repetition(scores, draws)
    _penalise_output(scores, draws)
    _mask(scores, draws)
    _ban(scores, draws)


def _add_bias(scores: Floats, draws: Sequence[Draw]) -> None:
    for row, draw in enumerate(draws):
        for id, bias in draw.sampling.logit_bias:
            if 0 <= id < scores.shape[1]:
                scores[row, id] += bias


def _penalise_repetition(scores: Floats, draws: Sequence[Draw]) -> None:
    penalties = np.array([draw.sampling.repetition_penalty for draw in draws])
    seen = [(*draw.prompt_ids, *draw.output_ids) if draw.sampling.penalises_prompt else () for draw in draws]
    rows, ids, _ = _count(seen, scores.shape[1])
    old, penalty = scores[rows, ids], penalties[rows]
    scores[rows, ids] = np.where(old > 0, old / penalty, old * penalty)


def _penalise_output(scores: Floats, draws: Sequence[Draw]) -> None:
    presence = np.array([draw.sampling.presence_penalty for draw in draws])
    frequency = np.array([draw.sampling.frequency_penalty for draw in draws])
    rows, ids, counts = _count([draw.output_ids for draw in draws], scores.shape[1])
    scores[rows, ids] -= frequency[rows] * counts + presence[rows]


def _mask(scores: Floats, draws: Sequence[Draw]) -> None:
    for row, draw in enumerate(draws):
        if draw.mask is None:
            continue
        allowed = np.unpackbits(draw.mask.words().view(np.uint8), bitorder="little")[: scores.shape[1]] > 0
        if allowed.any():  # else the scheduler discards what is drawn
            scores[row, : len(allowed)][~allowed] = -np.inf
            scores[row, len(allowed) :] = -np.inf


def _ban(scores: Floats, draws: Sequence[Draw]) -> None:
    for row, draw in enumerate(draws):
        ids = [id for id in draw.banned_ids if 0 <= id < scores.shape[1]]
        banned = scores[row, ids]
        scores[row, ids] = -np.inf
        if np.isneginf(scores[row].max()):  # a ban of every token is lifted: one must be chosen
            scores[row, ids] = banned


def _count(histories: Iterable[Sequence[int]], width: int) -> tuple[Ids, Ids, Ids]:
    """For each distinct pair of row and id: the row, the id and how often it occurs."""
    keys = [row * width + np.array(ids, dtype=np.int64) for row, ids in enumerate(histories) if ids]
    pairs, counts = np.unique(np.concatenate(keys or [np.empty(0, dtype=np.int64)]), return_counts=True)
    return pairs // width, pairs % width, counts
