"""How far the draft model has computed each sequence. Knows no tensors.

The draft model has a KV block for each block of the target, under the same id. So it needs no pool of its own, and what
it has computed is lost with the sequence's blocks: when they are freed, evicted or given to another sequence.
"""

from axon.engine.schedule.blocks import BlockPool
from axon.engine.schedule.sequence import Sequence


class DraftBlocks:
    """The blocks that the draft model has computed whole, so that sequences with the same prefix need not."""

    def __init__(self, pool: BlockPool) -> None:
        self._pool = pool
        self._whole = [-1] * pool.num_blocks
        """By block: ``BlockPool.num_fills`` when the draft model computed it; another number means other tokens."""

    def num_unseen(self, sequence: Sequence) -> int:
        """Tokens that the draft model still has to compute, at least one: behind the last it begins to draft."""
        size, seen = self._pool.block_size, sequence.num_seen
        while seen % size == 0 and seen // size < len(sequence.block_ids):
            if not self._is_whole(sequence.block_ids[seen // size]):
                break
            seen += size
        sequence.num_seen = min(seen, sequence.num_known - 1)
        return sequence.num_known - sequence.num_seen

    def note(self, sequence: Sequence, num_seen: int) -> None:
        """The draft model has computed the sequence up to ``num_seen`` tokens, all of them known."""
        size = self._pool.block_size
        for block_id in sequence.block_ids[sequence.num_seen // size : num_seen // size]:
            self._whole[block_id] = self._pool.num_fills[block_id]
        sequence.num_seen = num_seen

    def _is_whole(self, block_id: int) -> bool:
        return self._whole[block_id] == self._pool.num_fills[block_id]
