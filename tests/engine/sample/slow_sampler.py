"""Sampling written out token by token, slow and obvious, to hold the fast one against. Draws nothing."""

import math
from collections.abc import Callable

from axon.engine.batch import Draw


def distribution(logits: list[float], draw: Draw, rounded: Callable[[float], float] = float) -> list[float]:
    """The probability of every token, where each change of a score is ``rounded``."""
    scores = adjusted(logits, draw, rounded)
    sampling = draw.sampling
    ranking = sorted(range(len(scores)), key=lambda id: (-scores[id], id))
    if sampling.temperature == 0:
        return [1.0 if id == ranking[0] else 0.0 for id in range(len(scores))]
    weights = {id: math.exp((scores[id] - scores[ranking[0]]) / sampling.temperature) for id in ranking}
    if sampling.top_k > 0:
        ranking = ranking[: sampling.top_k]
    if sampling.min_p > 0:
        ranking = [id for id in ranking if weights[id] >= sampling.min_p]
    if sampling.top_p < 1:
        ranking = nucleus(ranking, weights, sampling.top_p)
    total = sum(weights[id] for id in ranking)
    return [weights[id] / total if id in ranking else 0.0 for id in range(len(scores))]


def adjusted(logits: list[float], draw: Draw, rounded: Callable[[float], float] = float) -> list[float]:
    """The logits after bias, penalties and bans."""
    scores = list(logits)
    sampling = draw.sampling
    for id, bias in sampling.logit_bias:
        if id < len(scores):
            scores[id] = rounded(scores[id] + bias)
    for id in {*draw.prompt_ids, *draw.output_ids}:
        penalty = sampling.repetition_penalty
        scores[id] = rounded(scores[id] / penalty if scores[id] > 0 else scores[id] * penalty)
    for id in set(draw.output_ids):
        lost = sampling.frequency_penalty * draw.output_ids.count(id) + sampling.presence_penalty
        scores[id] = rounded(scores[id] - lost)
    for id in draw.banned_ids:
        scores[id] = -math.inf
    return scores


def nucleus(ranking: list[int], weights: dict[int, float], top_p: float) -> list[int]:
    """The shortest head of the ranking that holds ``top_p`` of its mass; never empty."""
    total = sum(weights[id] for id in ranking)
    kept: list[int] = []
    mass = 0.0
    for id in ranking:
        kept.append(id)
        mass += weights[id]
        if mass >= top_p * total:
            break
    return kept
