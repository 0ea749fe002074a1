"""Which slot of the device's block tables a sequence has, and which of its blocks stand there. Knows no tensors.

A sequence keeps its slot from step to step, so that only new blocks travel. Who ended is not told here: a slot that
no sequence of the present step needs is given to the next that comes.
"""

from collections.abc import Sequence

import numpy as np

from axon.engine.batch import Draw, Span
from axon.engine.cuda.uniform import first_state
from axon.engine.sample.truncate import is_cut

_NEVER = -1


class Slots:
    """Slots 0 … num_slots-1; the tables have one row more, whose blocks are all the spare one."""

    def __init__(self, num_slots: int, table_width: int) -> None:
        self.num_slots = num_slots
        self.table_width = table_width
        self.states = np.zeros(num_slots + 1, np.uint64)
        """Of each slot's random numbers; see ``axon.engine.cuda.uniform``."""
        self.inverse_temperatures = np.zeros(num_slots + 1, np.float32)
        self.is_special = [False] * num_slots
        """Whether a slot's draws ask for more than a temperature."""
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

    def news(self, span: Span, slot: int) -> tuple[int, tuple[int, ...]]:
        """The place in the tables, taken as one row, from which on the span's blocks are new, and those blocks."""
        if self._admissions[slot] != span.admission:
            self._admissions[slot] = span.admission
            self._num_written[slot] = 0
        first = self._num_written[slot]
        self._num_written[slot] = len(span.block_ids)
        return slot * self.table_width + first, span.block_ids[first:]

    def forget(self) -> None:
        """Takes no block as written any more."""
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
        """Keeps what a sequence's draws have in common."""
        temperature = draw.sampling.temperature
        self.states[slot] = first_state(draw.seed, draw.choice)
        self.inverse_temperatures[slot] = min(1 / temperature, 1e30) if temperature > 0 else 0.0
        adjusted = draw.sampling.logit_bias or draw.sampling.penalises_output or draw.sampling.min_tokens
        asked = draw.sampling.logprobs is not None
        self.is_special[slot] = bool(adjusted) or asked or is_cut(draw.sampling)
        self._can_draw[slot] = True
