"""The row (slot) of the device's block tables that each sequence has, and its blocks that are there. Knows no tensors.

A sequence keeps its slot from step to step, so that only new blocks are sent. Ends of sequences are not reported here:
a slot that no sequence of the present step needs is given to the next one that comes.
"""

from collections.abc import Sequence

import numpy as np

from axon.engine.batch import Draw, Span
from axon.engine.cuda.sample.uniform import first_state
from axon.engine.sample.truncate import is_truncated

_NEVER = -1


class Slots:
    """Slots 0 … num_slots-1; the tables have one more row, whose blocks are all the spare block."""

    def __init__(self, num_slots: int, table_width: int) -> None:
        self.num_slots = num_slots
        self.table_width = table_width
        self.states = np.zeros(num_slots + 1, np.uint64)
        """State of each slot's random number generator; see ``axon.engine.cuda.sample.uniform``."""
        self.inverse_temperatures = np.zeros(num_slots + 1, np.float32)
        self.is_special = [False] * num_slots
        """Whether a slot's draws need more than a temperature."""
        self._slot_of: dict[int, int] = {}
        self._arrival_of = [_NEVER] * num_slots
        self._admissions = [_NEVER] * num_slots
        self._num_written = [0] * num_slots
        self._last_used = [0] * num_slots
        self._can_draw = [False] * num_slots
        self._step = 0

    @property
    def spare_slot(self) -> int:
        """The slot of rows that are padding."""
        return self.num_slots

    def take(self, spans: Sequence[Span]) -> list[int]:
        """The slot of each span's sequence; there are at most as many spans as slots."""
        self._step += 1
        slots = [self._slot_of.get(span.arrival, _NEVER) for span in spans]
        for slot in slots:
            if slot != _NEVER:
                self._last_used[slot] = self._step
        if _NEVER in slots:
            free = [slot for slot in range(self.num_slots) if self._last_used[slot] < self._step]
            free.sort(key=self._last_used.__getitem__, reverse=True)
            for index, span in enumerate(spans):
                if slots[index] == _NEVER:
                    slots[index] = self._claim(free.pop(), span)
        for span, slot in zip(spans, slots, strict=True):
            if span.draw is not None and not self._can_draw[slot]:
                self._remember(span.draw, slot)
        return slots

    def new_blocks(self, span: Span, slot: int) -> tuple[int, tuple[int, ...]]:
        """The span's blocks that are not in the tables yet, and the offset of the first in the flattened tables."""
        if self._admissions[slot] != span.admission:
            self._admissions[slot] = span.admission
            self._num_written[slot] = 0
        first = self._num_written[slot]
        self._num_written[slot] = len(span.block_ids)
        return slot * self.table_width + first, span.block_ids[first:]

    def forget(self) -> None:
        """Counts no block as written any more."""
        self._admissions = [_NEVER] * self.num_slots

    def _claim(self, slot: int, span: Span) -> int:
        self._slot_of.pop(self._arrival_of[slot], None)
        self._slot_of[span.arrival] = slot
        self._arrival_of[slot] = span.arrival
        self._admissions[slot] = _NEVER
        self._can_draw[slot] = False
        self._last_used[slot] = self._step
        return slot

    def _remember(self, draw: Draw, slot: int) -> None:
        """Stores what all draws of a sequence have in common."""
        temperature = draw.sampling.temperature
        self.states[slot] = first_state(draw.seed, draw.choice)
        self.inverse_temperatures[slot] = min(1 / temperature, 1e30) if temperature > 0 else 0.0
        adjusted = draw.sampling.logit_bias or draw.sampling.penalises_output or draw.sampling.min_tokens
        asked = draw.sampling.logprobs is not None or draw.mask is not None
        self.is_special[slot] = bool(adjusted) or asked or is_truncated(draw.sampling)
        self._can_draw[slot] = True
