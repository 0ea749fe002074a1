"""Tiers as rates: decides in which steps of a full engine a stream takes part. No I/O, no clock.

Below the highest tier that runs, a tier takes part in two of five steps, and all lower ones in one of five. These steps
are spread evenly, so that all steps take about as long. A stream that sits out a step keeps its slot and its blocks;
its tokens stay the same.
"""

from collections import Counter
from collections.abc import Iterable

from axon.engine.schedule.sequence import Sequence

_CYCLE = 5
_STEPS = (5, 2, 1)
"""Steps of a cycle in which a tier takes part: the highest that runs, the next one, and all others."""


class Tiers:
    """Counts steps and spreads the sequences of a tier over them."""

    def __init__(self) -> None:
        self._step = 0
        self._num_entered: Counter[int] = Counter()

    def enter(self, sequence: Sequence) -> None:
        """Gives a sequence that got a slot its offset behind the one of its tier that came before it."""
        sequence.tier_offset = self._num_entered[sequence.claim.priority]
        self._num_entered[sequence.claim.priority] += 1

    def next_step(self) -> None:
        """Counts a planned step."""
        self._step += 1

    def taking_part(self, sequences: Iterable[Sequence]) -> list[Sequence]:
        """The sequences that take part in this step; one whose prompt is not computed yet takes part in every step."""
        sequences = list(sequences)
        priorities = {sequence.claim.priority for sequence in sequences}
        if len(priorities) < 2:
            return sequences
        highest = max(priorities)
        steps_of = {each: _STEPS[min(highest - each, len(_STEPS) - 1)] for each in priorities}
        return [
            sequence
            for sequence in sequences
            if sequence.num_pending > 1 or self._takes_part(sequence, steps_of[sequence.claim.priority])
        ]

    def _takes_part(self, sequence: Sequence, num_steps: int) -> bool:
        """Spreads ``num_steps`` evenly over a cycle: two of five are the first and the fourth."""
        return (self._step + sequence.tier_offset) * num_steps % _CYCLE < num_steps
