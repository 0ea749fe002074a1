"""Lists the sequences that run and those that wait. A sequence is always in exactly one list. Decides nothing."""

from collections import Counter

from axon.engine.batch import Span
from axon.engine.copies import Load
from axon.engine.schedule.sequence import Sequence


class Roster:
    """All sequences of an engine."""

    def __init__(self) -> None:
        self.running: list[Sequence] = []
        """The sequences that have a slot, in the policy's order once a step is planned."""
        self.waiting: list[Sequence] = []
        """The sequences without a slot: new ones, and parked ones that may still hold their blocks."""
        self.by_id: dict[str, Sequence] = {}
        self.is_stable = False
        """Whether slots are known to change hands only after a sequence arrives, leaves, starts or is parked."""

    def arrive(self, sequence: Sequence) -> None:
        """Takes in a new sequence, which waits."""
        self.by_id[sequence.id] = sequence
        self.waiting.append(sequence)
        self.is_stable = False

    def start(self, sequence: Sequence) -> None:
        """Gives a waiting sequence a slot."""
        self.waiting.remove(sequence)
        self.running.append(sequence)
        self.is_stable = False

    def park(self, sequence: Sequence) -> None:
        """Takes a running sequence's slot; it waits for another."""
        self.running.remove(sequence)
        self.waiting.append(sequence)
        self.is_stable = False

    def leave(self, sequence: Sequence) -> None:
        """Forgets a sequence."""
        del self.by_id[sequence.id]
        (self.running if sequence in self.running else self.waiting).remove(sequence)
        self.is_stable = False

    def of_span(self, span: Span | Load) -> Sequence | None:
        """The sequence that a span or a load was planned for; None if it has left, even if its id is in use again."""
        sequence = self.by_id.get(span.id)
        return sequence if sequence is not None and sequence.arrival == span.arrival else None

    def last_running(self, tenant: str | None = None) -> Sequence:
        """The last running sequence, of the tenant or of all."""
        return next(each for each in reversed(self.running) if tenant in (None, each.claim.tenant))

    def keeping_blocks(self, tenant: str | None = None, *, but: Sequence | None = None) -> list[Sequence]:
        """The parked sequences, of the tenant or of all, that still hold blocks; ``but`` is left out."""
        return [
            sequence
            for sequence in self.waiting
            if sequence.block_ids and sequence is not but and tenant in (None, sequence.claim.tenant)
        ]

    def running_by_priority(self) -> dict[int, int]:
        """Number of running sequences of each priority."""
        return dict(Counter(sequence.claim.priority for sequence in self.running))

    def check(self) -> None:
        """Proves that every sequence is in exactly one list; raises AssertionError."""
        ids = [sequence.id for sequence in (*self.running, *self.waiting)]
        assert sorted(ids) == sorted(self.by_id), "a sequence is lost or stands in two places"
