"""Log probabilities of given tokens, computed on the device a few rows of logits at a time. Draws nothing.

Only a few numbers of each row travel to the host: the log probability and rank of the given token, and the most likely
tokens. The ranking is that of ``sample.truncate``: the highest score first, the lower id first among equals.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from axon.engine.batch import Drawn, Span

ROWS = 64
"""Rows of logits that are computed at a time: each is as wide as the vocabulary, and needs about 22 bytes a token."""


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """The results of some spans' scores, on their way to the host: there once the step's event has come."""

    spans: Sequence[Span]
    numbers: torch.Tensor
    """A row for each score, as ``score`` writes them."""

    def by_arrival(self) -> dict[int, list[Drawn]]:
        """The results of each sequence's scores, in order."""
        found: dict[int, list[Drawn]] = {}
        rows = iter(self.numbers.tolist())
        for span in self.spans:
            for draw in span.scores:
                found.setdefault(span.arrival, []).append(
                    _drawn(next(rows), draw.given or 0, draw.sampling.logprobs or 0)
                )
        return found


def score_rows(
    spans: Sequence[Span],
    hidden: torch.Tensor,
    inputs: Mapping[str, torch.Tensor],
    logits_of: Callable[[torch.Tensor], torch.Tensor],
    *,
    leads: bool,
) -> ScoredRows | None:
    """Begins to score the spans' tokens; ``hidden`` has a row for each. None on a rank that only computes its part."""
    most = max(draw.sampling.logprobs or 0 for span in spans for draw in span.scores)
    parts: list[torch.Tensor] = []
    for first in range(0, len(hidden), ROWS):
        logits = logits_of(hidden[first : first + ROWS])
        if leads:
            parts.append(score(logits, inputs["given"][first : first + ROWS], most))
        del logits
    return ScoredRows(spans, torch.cat(parts).to("cpu", non_blocking=True)) if parts else None


def score(logits: torch.Tensor, given: torch.Tensor, num_top: int) -> torch.Tensor:
    """Scores one token of each row.

    Returns float64 numbers [rows, 2 + 2 * num_top]: its log probability and rank, then the ids of the most likely
    tokens, then their log probabilities.
    """
    scores = logits.float()
    peaks = scores.amax(1, keepdim=True)
    totals = (scores - peaks).exp_().sum(1, keepdim=True, dtype=torch.float64).log_()
    given = given.long().unsqueeze(1)
    own = scores.gather(1, given)
    is_before = torch.arange(scores.shape[1], device=scores.device) < given
    ranks = 1 + ((scores > own) | ((scores == own) & is_before)).sum(1, keepdim=True)
    top = _likeliest(scores, min(num_top, scores.shape[1]))
    logprobs, of_top = (found.double() - peaks.double() - totals for found in (own, scores.gather(1, top)))
    return torch.cat([logprobs, ranks.double(), top.double(), of_top], dim=1)


def _likeliest(scores: torch.Tensor, count: int) -> torch.Tensor:
    """The ids of each row's first tokens in the ranking; ``topk`` alone leaves the order of equals open."""
    if not count:
        return torch.empty((len(scores), 0), dtype=torch.int64, device=scores.device)
    bits = (scores + 0.0).view(torch.int32)  # no negative zeros: they equal zero, but not as bits
    bits = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # floats in the order of integers: all bits of a negative one turn
    ids = torch.arange(scores.shape[1] - 1, -1, -1, device=scores.device)
    return bits.long().mul_(1 << 32).add_(ids).topk(count, dim=1).indices


def _drawn(numbers: Sequence[float], token: int, num_top: int) -> Drawn:
    logprob, rank, *rest = numbers
    ids, logprobs = rest[: len(rest) // 2], rest[len(rest) // 2 :]
    top = tuple((int(id), each) for id, each in zip(ids[:num_top], logprobs[:num_top], strict=True))
    return Drawn(token, logprob, top, int(rank))
