"""Remembers from step to step that the first in rank waits for blocks, so that nobody overtakes it. Knows no blocks."""

from axon.engine.schedule.sequence import Sequence
from axon.engine.schedule.slot_queue import SlotQueue

HEAD_WAIT_STEPS = 256
"""Steps that the first in rank may wait for blocks while others overtake it into reserved slots; then nobody does."""


class HeadWait:
    """The first in rank, if it was found to lack blocks."""

    def __init__(self) -> None:
        self._head: Sequence | None = None
        self._num_steps = 0

    def lacks_blocks(self, sequence: Sequence) -> None:
        """A sequence that was to start found no blocks; of several the first stays."""
        self._head = self._head or sequence

    def waits(self, queue: SlotQueue) -> bool:
        """Whether the queue's head is known to wait."""
        if self._head is not queue.head:
            self._head, self._num_steps = None, 0
        return self._head is not None

    def hold(self, queue: SlotQueue) -> None:
        """The head waits for another step: nobody overtakes it, and after many not even into reserved slots."""
        self._head, self._num_steps = queue.head, self._num_steps + 1
        queue.head_blocks_all = True
        queue.head_blocks_reserved = self._num_steps > HEAD_WAIT_STEPS
