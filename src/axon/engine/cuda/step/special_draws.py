"""The draws of a step that need more than a temperature: on the device once their masks are filled, or on the host.

Knows no model.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch

from axon.engine.batch import PLACEHOLDER, Draw, Drawn, Span
from axon.engine.cuda.sample.sampler import DeviceSampler, Special
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

    def draw(
        self,
        logits: torch.Tensor,
        rows: Sequence[DrawnRow],
        inputs: Mapping[str, torch.Tensor],
        sampled: torch.Tensor,
        previous: CudaFlight | None,
    ) -> dict[int, Drawn]:
        """Launches the draws, or leaves them for later; returns by row those that were made on the host."""
        is_special = self._slots.is_special
        specials = [Special(each.row, _known(each, previous)) for each in rows if is_special[each.slot]]
        if not specials:
            return {}
        temperatures, numbers = inputs["inverse_temperatures"], inputs["numbers"]
        is_masked = any(special.needs_mask for special in specials)
        if is_masked:
            self._left.append(self._sampler.begin_masked(logits, specials, temperatures, numbers, sampled))
        if cut := [special for special in specials if special.needs_truncation]:
            self._left.append(partial(self._sampler.draw_truncated, logits, cut, temperatures, numbers, sampled))
        on_host = [special for special in specials if special.needs_host]
        if on_host or self._at_once or not is_masked:
            self.launch_left()
        if not on_host:
            return {}
        drawn = self._sampler.draw_on_host(logits, on_host, sampled)
        return {special.row: each for special, each in zip(on_host, drawn, strict=True)}

    def launch_left(self) -> None:
        """Launches the draws that are left now, waiting for their masks."""
        for launch_draws in self.take_left():
            launch_draws()

    def take_left(self) -> list[Callable[[], None]]:
        """The draws that are left, which are the caller's to launch from now on."""
        left, self._left = self._left, []
        return left


def _known(each: DrawnRow, previous: CudaFlight | None) -> Draw:
    """The draw, with the placeholder in its history replaced by the token."""
    draw = each.draw
    if draw.mask is not None and each.span.token_ids[-1] == PLACEHOLDER:
        assert previous is not None, "a placeholder has a step before it"
        draw.mask.masks.learn(previous.token_of(each.span.arrival))
    if not draw.output_ids or draw.output_ids[-1] != PLACEHOLDER:
        return draw
    assert previous is not None, "a placeholder has a step before it"
    return replace(draw, output_ids=(*draw.output_ids[:-1], previous.token_of(each.span.arrival)))
