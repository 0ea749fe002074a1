"""The draws of a step that need more than a temperature: on the device, once their masks are filled.

Knows no model.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import torch

from axon.engine.batch import PLACEHOLDER, Draw, Span
from axon.engine.cuda.sample.drawn_scores import DrawnScores
from axon.engine.cuda.sample.prompt_scores import ROWS
from axon.engine.cuda.sample.sampler import DeviceSampler
from axon.engine.cuda.sample.special import Special
from axon.engine.cuda.step.flight import CudaFlight
from axon.engine.cuda.step.table_slots import Slots


class DrawnRow(NamedTuple):
    """A row of a step's logits, with its draw."""

    row: int
    slot: int
    span: Span
    draw: Draw


def drawn_rows(spans: Sequence[Span], slots: Sequence[int], *, all_rows: bool) -> list[DrawnRow]:
    """The rows of logits that tokens are drawn from. ``all_rows``: the logits have a row for every span, one token
    each; else only for draws."""
    if all_rows:
        pairs = enumerate(zip(spans, slots, strict=True))
        return [DrawnRow(row, slot, span, span.draw) for row, (span, slot) in pairs if span.draw is not None]
    draws = [(span, slot, draw) for span, slot in zip(spans, slots, strict=True) for draw in span.drawn]
    return [DrawnRow(row, slot, span, draw) for row, (span, slot, draw) in enumerate(draws)]


class SpecialDraws:
    """Finds and makes them; keeps those of the step that is being launched until their masks are filled."""

    def __init__(self, sampler: DeviceSampler, slots: Slots, *, at_once: bool) -> None:
        """``at_once``: no draw is left for later, because other ranks wait for it."""
        self._sampler, self._slots, self._at_once = sampler, slots, at_once
        self._left: list[Callable[[], None]] = []
        self._drawn_scores: list[DrawnScores] = []
        self._before: torch.Tensor | None = None

    def begin(self, spans: Sequence[Span], sampled: torch.Tensor) -> None:
        """Keeps the tokens that the step before draws, where the draws of this one need them. They are not known yet,
        and will be overwritten."""
        waits = any(span.draw is not None and _is_unknown(span.draw) for span in spans)
        self._before = sampled.clone() if waits else None

    def draw(
        self,
        logits: torch.Tensor,
        rows: Sequence[DrawnRow],
        inputs: Mapping[str, torch.Tensor],
        sampled: torch.Tensor,
        previous: CudaFlight | None,
        first_place: int,
    ) -> None:
        """Launches the draws, or leaves them for later. ``sampled`` has the tokens from ``first_place`` on."""
        is_special = self._slots.is_special
        specials = [_special(each, previous) for each in rows if is_special[each.slot]]
        if not specials:
            return
        temperatures, numbers = inputs["inverse_temperatures"], inputs["numbers"]
        adjusted = [special for special in specials if special.is_adjusted]
        plain = [special for special in specials if not special.is_adjusted]
        left: list[Callable[[], None]] = []
        masks = self._sampler.begin_masks(specials)
        scores = self._scores_of(specials, logits, first_place)
        how = temperatures, numbers, sampled
        if masks is not None and any(special.draw.mask for special in plain):
            left.append(partial(self._sampler.draw_masked, logits, plain, masks, *how))
        if cut := [special for special in plain if special.needs_truncation]:
            left.append(partial(self._sampler.draw_truncated, logits, cut, *how))
        for at in range(0, len(adjusted), ROWS):
            part = adjusted[at : at + ROWS]
            left.append(partial(self._sampler.draw_adjusted, logits, part, self._before, masks, *how))
        if scores is not None:
            left.append(partial(scores.score, sampled))
            self._drawn_scores.append(scores)
        self._left += left
        if self._at_once or masks is None:
            self.launch_left()

    def _scores_of(self, specials: Sequence[Special], logits: torch.Tensor, first_place: int) -> DrawnScores | None:
        """The log probabilities that the draws ask for, of the rows before any is masked."""
        asked = [special for special in specials if special.draw.sampling.logprobs is not None]
        if not asked:
            return None
        rows = self._sampler.take_rows(logits, [special.row for special in asked])
        return DrawnScores.of(asked, rows, first_place)

    def launch_left(self) -> None:
        """Launches the draws that are left now, waiting for their masks."""
        left, self._left = self._left, []
        for launch_draws in left:
            launch_draws()

    def take(self) -> tuple[list[Callable[[], None]], list[DrawnScores]]:
        """The draws that are left, which are the caller's to launch from now on, and the scores of the step."""
        left, self._left = self._left, []
        scores, self._drawn_scores = self._drawn_scores, []
        return left, scores


def _is_unknown(draw: Draw) -> bool:
    """Whether the newest of its output tokens is still to be drawn."""
    return bool(draw.output_ids) and draw.output_ids[-1] == PLACEHOLDER


def _special(each: DrawnRow, previous: CudaFlight | None) -> Special:
    """The draw, with where the token is that a placeholder in its history stands for. A mask needs the token itself,
    and waits for it."""
    draw = each.draw
    if draw.mask is not None and each.span.token_ids[-1] == PLACEHOLDER:
        assert previous is not None, "a placeholder has a step before it"
        draw.mask.masks.learn(previous.token_of(each.span.arrival))
    if not _is_unknown(draw):
        return Special(each.row, draw)
    assert previous is not None, "a placeholder has a step before it"
    return Special(each.row, draw, previous.place_of[each.span.arrival])
