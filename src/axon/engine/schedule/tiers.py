"""How often a stream takes part in a full engine's steps: each step, or where a higher tier runs beside it, less often.

Pure. A tier below the highest that runs has two of its five steps, two below one of them, by turns spread over the
steps: these stay equally long. A stream that sits a step out keeps slot and blocks; its tokens stay the same.
"""

from collections import Counter
from collections.abc import Iterable

from axon.engine.schedule.sequence import Sequence

_CYCLE = 5
_STEPS = (5, 2, 1)
"""Of a cycle: the highest tier's that runs, the next one's, and all others'."""


class Tiers:
    """Counts steps, and gives sequences their turns."""

    def __init__(self) -> None:
        self._step = 0
        self._num_entered: Counter[int] = Counter()

    def enter(self, sequence: Sequence) -> None:
        """The sequence got a slot: those of its tier have their turns one after the other."""
        sequence.turn = self._num_entered[sequence.claim.priority]
        self._num_entered[sequence.claim.priority] += 1

    def next_step(self) -> None:
        """The step is planned."""
        self._step += 1

    def taking_part(self, sequences: Iterable[Sequence]) -> list[Sequence]:
        """Those whose turn it is in this step; a prompt that is not computed yet takes part in each."""
        sequences = list(sequences)
        priorities = {sequence.claim.priority for sequence in sequences}
        if len(priorities) < 2:
            return sequences
        highest = max(priorities)
        steps_of = {each: _STEPS[min(highest - each, len(_STEPS) - 1)] for each in priorities}
        return [
            sequence
            for sequence in sequences
            if sequence.num_pending > 1 or self._is_turn(sequence, steps_of[sequence.claim.priority])
        ]

    def _is_turn(self, sequence: Sequence, num_steps: int) -> bool:
        """Spread evenly: two of five are the first and the fourth."""
        return (self._step + sequence.turn) * num_steps % _CYCLE < num_steps
