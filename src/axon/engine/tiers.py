"""How often a stream takes part in a full engine's steps: each step, or where a higher tier runs beside it, less often.

Pure. A tier below the highest that runs gets half its rate, two below a quarter, by turns spread over the steps: these
stay equally long. A stream that sits a step out keeps slot and blocks; its tokens stay the same.
"""

from collections import Counter
from collections.abc import Iterable

from axon.engine.sequence import Sequence

_MOST_HALVINGS = 2


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
        period_of = {each: 2 ** min(highest - each, _MOST_HALVINGS) for each in priorities}
        return [
            sequence
            for sequence in sequences
            if sequence.num_pending > 1 or (self._step + sequence.turn) % period_of[sequence.claim.priority] == 0
        ]
