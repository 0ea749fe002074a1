"""The blocks that sequences hold and could be given: new ones, found ones, and not more than their tenant's share.

Knows no slots and no order: who has to give blocks up for whom is the scheduler's to say.
"""

from collections.abc import Iterable

from axon.engine.schedule.blocks import BlockPool
from axon.engine.schedule.sequence import Sequence


class Room:
    """Of one pool."""

    def __init__(self, pool: BlockPool) -> None:
        self.pool = pool

    def hashes_ahead(self, sequence: Sequence) -> list[bytes]:
        """Of the full blocks that the sequence is about to have computed."""
        return sequence.full_hashes(sequence.num_known)[sequence.num_settled // self.pool.block_size :]

    def next_hash(self, sequence: Sequence) -> bytes | None:
        """Of the first full block that it would have to compute; None where it has kept its blocks."""
        if sequence.block_ids:
            return None
        hashes = self._hashes(sequence)
        num_found = len(self.pool.find(hashes))
        return hashes[num_found] if num_found < len(hashes) else None

    def num_to_compute(self, sequence: Sequence) -> int:
        """Of a waiting sequence's tokens, those that are in no block."""
        return sequence.num_pending - len(self._find(sequence)) * self.pool.block_size

    def has_for(self, sequence: Sequence, keeping: Iterable[Sequence]) -> bool:
        """Whether a waiting sequence could start, if those who keep blocks gave them up."""
        found, num_new = self._needed(sequence)
        num_kept = sum(len(each.block_ids) for each in keeping if each is not sequence)
        return self.pool.can_take(found, max(0, num_new - num_kept))

    def is_within_share(self, sequence: Sequence, keeping: Iterable[Sequence] = ()) -> bool:
        """Whether a waiting sequence could start by its tenant's share, if those of its tenant gave their blocks up."""
        tenant = sequence.claim.tenant
        num_kept = sum(len(each.block_ids) for each in keeping if each.claim.tenant == tenant and each is not sequence)
        found, num_new = self._needed(sequence)
        return self.pool.num_used_by(tenant) - num_kept + self.pool.num_taken(found, num_new) <= sequence.max_blocks

    def admit(self, sequence: Sequence) -> bool:
        """Gives a waiting sequence blocks for all its known tokens at once; False where there are not enough."""
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
        """Whether the pool has so many blocks."""
        return self.pool.can_take([], num_blocks)

    def may_extend(self, sequence: Sequence, num_blocks: int) -> bool:
        """Whether its tenant's share has so many blocks for it."""
        return self.pool.num_used_by(sequence.claim.tenant) + num_blocks <= sequence.max_blocks

    def extend(self, sequence: Sequence, num_blocks: int) -> None:
        """Gives it more blocks, which it can and may have."""
        sequence.block_ids += self.pool.take([], num_blocks, sequence.claim.tenant)

    def publish(self, sequence: Sequence, first: int, end: int) -> None:
        """The blocks that the tokens from ``first`` to ``end`` have filled can be found from now on."""
        first_full, num_full = first // self.pool.block_size, end // self.pool.block_size
        if num_full > first_full:
            hashes = sequence.full_hashes(end)
            for index in range(first_full, num_full):
                self.pool.publish(sequence.block_ids[index], hashes[index])

    def free(self, sequence: Sequence) -> None:
        """Takes all its blocks."""
        self.pool.give_back(sequence.block_ids)
        sequence.block_ids = []
        sequence.num_computed = sequence.num_settled = 0

    def _needed(self, sequence: Sequence) -> tuple[list[int], int]:
        """The cached blocks that it would start with, and how many others."""
        found = self._find(sequence)
        return found, sequence.num_missing_blocks(sequence.num_tokens) - len(found)

    def _find(self, sequence: Sequence) -> list[int]:
        return [] if sequence.block_ids else self.pool.find(self._hashes(sequence))

    def _hashes(self, sequence: Sequence) -> list[bytes]:
        """The last token is always computed, because its logits are needed; what is in flight has no hash yet."""
        return sequence.full_hashes(min(sequence.num_known, sequence.num_tokens - 1))
