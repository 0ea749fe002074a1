"""Gives blocks to sequences and takes them back: cached ones, new ones, no more than the tenant's share.

Knows no slots and no order: who gives up blocks for whom is the scheduler's decision.
"""

from collections.abc import Iterable

from axon.engine.copies import Copies, Load
from axon.engine.schedule.blocks import BlockPool, tag_of
from axon.engine.schedule.sequence import Sequence
from axon.engine.schedule.shelf import Shelf

LOAD_PATIENCE_S = 2.0
"""Seconds that a sequence waits for the next block from a file; then it computes: the disk hangs, or is too busy."""


class Allocation:
    """Blocks of one pool, given to sequences and taken back; with a shelf, their copies as well."""

    def __init__(self, pool: BlockPool, shelf: Shelf | None = None) -> None:
        self.pool, self.shelf = pool, shelf

    def hashes_ahead(self, sequence: Sequence) -> list[bytes]:
        """Hashes of the full blocks that the sequence is about to compute."""
        return sequence.full_hashes(sequence.num_known)[sequence.num_settled // self.pool.block_size :]

    def promised(self, running: Iterable[Sequence]) -> set[bytes]:
        """Hashes of the blocks that running sequences are about to fill."""
        return {hash for sequence in running for hash in self.hashes_ahead(sequence)}

    def next_hash(self, sequence: Sequence) -> bytes | None:
        """Hash of the first full block that a waiting sequence would have to compute; None if it kept its blocks."""
        if sequence.block_ids:
            return None
        hashes = self._hashes(sequence)
        num_found = len(self.pool.find(hashes))
        return hashes[num_found] if num_found < len(hashes) else None

    def num_to_compute(self, sequence: Sequence) -> int:
        """Tokens of a waiting sequence that stand in no block, and come from no shelf."""
        found = self._find(sequence)
        num_blocks = len(found) + self._num_on_shelf(sequence, len(found))
        return sequence.num_pending - num_blocks * self.pool.block_size

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
        num_to_load = self._num_on_shelf(sequence, len(found), relents=True)
        sequence.block_ids += self.pool.take(found, num_new, sequence.claim.tenant)
        if is_new:
            sequence.num_computed = sequence.num_settled = len(found) * self.pool.block_size
            sequence.num_to_load = (len(found) + num_to_load) * self.pool.block_size if num_to_load else 0
            sequence.load_asked_at = 0.0
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
                if self.shelf is not None and sequence.may_be_shelved:
                    self.shelf.offer(sequence.block_ids[index], hashes[index], sequence.tag)

    def free(self, sequence: Sequence) -> None:
        """Takes all blocks of a sequence; nothing of it counts as computed any more."""
        self.pool.give_back(sequence.block_ids)
        sequence.block_ids = []
        sequence.num_computed = sequence.num_settled = sequence.num_to_load = sequence.num_seen = 0

    def plan_copies(self, running: Iterable[Sequence]) -> Copies | None:
        """The copies beside a step whose blocks are all given out: loads of the running sequences, in order, and saves;
        None if there are none."""
        if self.shelf is None:
            return None
        most, loads = self.shelf.max_copies, list[Load]()
        for sequence in running:
            if sequence.is_loading and (load := self._load(sequence, self.shelf, most)):
                loads.append(load)
                most -= len(load.slots)
        saves = self.shelf.plan_saves(self.pool.hash_of)
        return Copies(tuple(loads), saves) if loads or saves else None

    def settle_load(self, sequence: Sequence, load: Load) -> int:
        """Blocks of a sequence have come from the shelf; returns how many of its tokens count as cached by that."""
        if not sequence.block_ids or load.admission != sequence.num_admissions:
            return 0  # parked since: the blocks may be another sequence's
        sequence.num_settled = load.end
        self.publish(sequence, load.first, load.end)
        return sequence.credit(load.end)

    def settle_copies(self, copies: Copies) -> None:
        """The copies of a step are done."""
        if self.shelf is not None:
            self.shelf.settle(copies)

    def take_news(self, now: float) -> None:
        """Takes in what the shelf's files have done; ``now`` is Unix time in seconds."""
        if self.shelf is not None:
            self.shelf.take_news(now)

    def erase(self, sessions: Iterable[str]) -> None:
        """Erases the copies of the sessions' blocks; those on the device can no longer be found."""
        if self.shelf is not None:
            for session in sessions:
                for key in self.shelf.forget(tag_of(session)):
                    self.pool.forget(key)

    def check(self, everyone: list[Sequence]) -> None:
        """Proves that these sequences hold all used blocks, and what they have computed; raises AssertionError."""
        self.pool.check(sequence.block_ids for sequence in everyone)
        for sequence in everyone:
            capacity = len(sequence.block_ids) * self.pool.block_size
            assert sequence.num_settled <= sequence.num_computed <= capacity, "computed tokens stand in no block"
        if self.shelf is not None:
            self.shelf.check()

    def _load(self, sequence: Sequence, shelf: Shelf, most: int) -> Load | None:
        """The next blocks of a sequence that are at hand; what has left the shelf, or does not come, is computed."""
        size, first = self.pool.block_size, sequence.num_computed
        keys = sequence.full_hashes(sequence.num_to_load)[first // size :]
        slots = shelf.take(keys, most)
        if not slots:
            sequence.load_asked_at = sequence.load_asked_at or shelf.now
            if not shelf.num_held(keys[:1]) or shelf.now - sequence.load_asked_at > LOAD_PATIENCE_S:
                sequence.num_to_load = 0
            return None
        sequence.load_asked_at = 0.0
        blocks = sequence.block_ids[first // size :][: len(slots)]
        sequence.num_computed = end = first + len(slots) * size
        return Load(
            id=sequence.id,
            arrival=sequence.arrival,
            admission=sequence.num_admissions,
            first=first,
            end=end,
            slots=slots,
            block_ids=tuple(blocks),
        )

    def _num_on_shelf(self, sequence: Sequence, num_found: int, *, relents: bool = False) -> int:
        """Blocks behind those found on the device that a waiting sequence would load from the shelf."""
        if self.shelf is None or sequence.block_ids:
            return 0
        return self.shelf.num_worth_loading(self._hashes(sequence)[num_found:], relents=relents)

    def _needed(self, sequence: Sequence) -> tuple[list[int], int]:
        """The cached blocks that a waiting sequence would start with, and how many new ones."""
        found = self._find(sequence)
        return found, sequence.num_missing_blocks(sequence.num_tokens) - len(found)

    def _find(self, sequence: Sequence) -> list[int]:
        return [] if sequence.block_ids else self.pool.find(self._hashes(sequence))

    def _hashes(self, sequence: Sequence) -> list[bytes]:
        """Hashes of the blocks that it may find: its last token is always computed, because its logits are needed."""
        return sequence.full_hashes(min(sequence.num_known, sequence.num_tokens - 1))
