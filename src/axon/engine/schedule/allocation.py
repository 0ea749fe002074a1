"""Gives blocks to sequences and takes them back: cached ones, new ones, no more than the tenant's share.

Knows no slots and no order: who gives up blocks for whom is the scheduler's decision.
"""

from collections.abc import Iterable

from axon.engine.schedule.blocks import BlockPool
from axon.engine.schedule.sequence import Sequence


class Allocation:
    """Blocks of one pool, given to sequences and taken back."""

    def __init__(self, pool: BlockPool) -> None:
        self.pool = pool

    def hashes_ahead(self, sequence: Sequence) -> list[bytes]:
        """Hashes of the full blocks that the sequence is about to compute."""
        return sequence.full_hashes(sequence.num_known)[sequence.num_settled // self.pool.block_size :]

    def next_hash(self, sequence: Sequence) -> bytes | None:
        """Hash of the first full block that a waiting sequence would have to compute; None if it kept its blocks."""
        if sequence.block_ids:
            return None
        hashes = self._hashes(sequence)
        num_found = len(self.pool.find(hashes))
        return hashes[num_found] if num_found < len(hashes) else None

    def num_to_compute(self, sequence: Sequence) -> int:
        """Tokens of a waiting sequence that stand in no block."""
        return sequence.num_pending - len(self._find(sequence)) * self.pool.block_size

    def could_admit(self, sequence: Sequence, keeping: Iterable[Sequence]) -> bool:
        """Whether the pool has enough blocks for a waiting sequence if those in ``keeping`` gave up theirs."""
        found, num_new = self._needed(sequence)
        num_kept = sum(len(each.block_ids) for each in keeping if each is not sequence)
        return self.pool.can_take(found, max(0, num_new - num_kept))

    def is_within_share(self, sequence: Sequence, keeping: Iterable[Sequence] = ()) -> bool:
        """Whether the tenant's share has enough blocks for a waiting sequence.

        Sequences of the same tenant in ``keeping`` are counted as having given up their blocks.
        """
        tenant = sequence.claim.tenant
        num_kept = sum(len(each.block_ids) for each in keeping if each.claim.tenant == tenant and each is not sequence)
        found, num_new = self._needed(sequence)
        return self.pool.num_used_by(tenant) - num_kept + self.pool.num_taken(found, num_new) <= sequence.max_blocks

    def admit(self, sequence: Sequence) -> bool:
        """Gives a waiting sequence blocks for all its known tokens at once; False if there are not enough."""
        found, num_new = self._needed(sequence)
        if not self.pool.can_take(found, num_new) or not self.is_within_share(sequence):
            return False
        self.pool.set_limit(sequence.claim.tenant, sequence.max_blocks)
        is_new = not sequence.block_ids
        sequence.block_ids += self.pool.take(found, num_new, sequence.claim.tenant)
        if is_new:
            sequence.num_computed = sequence.num_settled = len(found) * self.pool.block_size
            sequence.num_admissions += 1
        return True

    def can_extend(self, num_blocks: int) -> bool:
        """Whether the pool has ``num_blocks`` blocks to give."""
        return self.pool.can_take([], num_blocks)

    def may_extend(self, sequence: Sequence, num_blocks: int) -> bool:
        """Whether the tenant's share leaves the sequence ``num_blocks`` more blocks."""
        return self.pool.num_used_by(sequence.claim.tenant) + num_blocks <= sequence.max_blocks

    def extend(self, sequence: Sequence, num_blocks: int) -> None:
        """Gives a sequence more blocks; ask ``can_extend`` and ``may_extend`` first."""
        sequence.block_ids += self.pool.take([], num_blocks, sequence.claim.tenant)

    def publish(self, sequence: Sequence, first: int, end: int) -> None:
        """Makes the blocks findable that the tokens from ``first`` to ``end`` have filled."""
        first_full, num_full = first // self.pool.block_size, end // self.pool.block_size
        if num_full > first_full:
            hashes = sequence.full_hashes(end)
            for index in range(first_full, num_full):
                self.pool.publish(sequence.block_ids[index], hashes[index])

    def free(self, sequence: Sequence) -> None:
        """Takes all blocks of a sequence; nothing of it counts as computed any more."""
        self.pool.give_back(sequence.block_ids)
        sequence.block_ids = []
        sequence.num_computed = sequence.num_settled = 0

    def _needed(self, sequence: Sequence) -> tuple[list[int], int]:
        """The cached blocks that a waiting sequence would start with, and how many new ones."""
        found = self._find(sequence)
        return found, sequence.num_missing_blocks(sequence.num_tokens) - len(found)

    def _find(self, sequence: Sequence) -> list[int]:
        return [] if sequence.block_ids else self.pool.find(self._hashes(sequence))

    def _hashes(self, sequence: Sequence) -> list[bytes]:
        """Hashes of the blocks that it may find: its last token is always computed, because its logits are needed."""
        return sequence.full_hashes(min(sequence.num_known, sequence.num_tokens - 1))
