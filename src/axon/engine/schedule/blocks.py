"""The pool of KV blocks: reference counts, prefix cache, eviction. Knows no tensors and no sequences.

A block is free (empty), used (one or more sequences hold it) or cached (nobody holds it, but its content is known by
its hash and can be reused until the block is evicted).

A block belongs to an owner, and hashes are salted by owner, so owners share no blocks. While an owner has more blocks
than its limit, used and cached together, its cached ones are evicted before those of others; else the least recently
used one is.
"""

import hashlib
from array import array
from collections import Counter, OrderedDict
from collections.abc import Iterable


def chain_hashes(hashes: list[bytes], token_ids: list[int], num_full: int, block_size: int, *, salt: str) -> None:
    """Extends the hash chain to ``num_full`` blocks: each hash covers the salt and all tokens up to its block's end."""
    parent = hashes[-1] if hashes else hashlib.blake2b(salt.encode(), digest_size=16).digest()
    for index in range(len(hashes), num_full):
        tokens = array("q", token_ids[index * block_size : (index + 1) * block_size])
        parent = hashlib.blake2b(parent + tokens.tobytes(), digest_size=16).digest()
        hashes.append(parent)


def tag_of(session: str) -> bytes:
    """What the copies of a session's blocks are known by, to be erased; none without a session."""
    return hashlib.blake2b(session.encode(), digest_size=16).digest() if session else b""


class BlockPool:
    """Hands out block ids 0 … num_blocks-1, counts references and finds full blocks by their hash."""

    def __init__(self, num_blocks: int, block_size: int) -> None:
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.num_fills = [0] * num_blocks
        """By block: number of times that it was taken for new content."""
        self._free = list(range(num_blocks - 1, -1, -1))
        self._holders: dict[int, int] = {}
        self._cached: OrderedDict[int, None] = OrderedDict()  # least recently used first
        self._block_of: dict[bytes, int] = {}
        self._hash_of: dict[int, bytes] = {}
        self._owner_of: dict[int, str] = {}
        """The owner of each block that is used or cached."""
        self._used_by: Counter[str] = Counter()
        self._cached_by: dict[str, OrderedDict[int, None]] = {}
        self._limits: dict[str, int] = {}

    @property
    def num_free(self) -> int:
        return len(self._free)

    @property
    def num_used(self) -> int:
        return len(self._holders)

    @property
    def num_cached(self) -> int:
        return len(self._cached)

    def num_used_by(self, owner: str) -> int:
        """Used blocks of the owner."""
        return self._used_by[owner]

    def set_limit(self, owner: str, num_blocks: int) -> None:
        """Sets the most blocks that the owner should have; forgotten once it has none."""
        if num_blocks < self.num_blocks:
            self._limits[owner] = num_blocks
        else:
            self._limits.pop(owner, None)

    def num_taken(self, found: Iterable[int], num_new: int) -> int:
        """Number of blocks that ``take`` would add to those in use."""
        return num_new + sum(1 for block_id in found if block_id in self._cached)

    def find(self, hashes: Iterable[bytes]) -> list[int]:
        """The blocks of the longest cached or used prefix of ``hashes``; asking does not hold them."""
        found: list[int] = []
        for block_hash in hashes:
            block_id = self._block_of.get(block_hash)
            if block_id is None:
                break
            found.append(block_id)
        return found

    def can_take(self, found: Iterable[int], num_new: int) -> bool:
        """Whether ``take`` would find enough blocks."""
        num_revived = sum(1 for block_id in found if block_id in self._cached)
        return num_new <= self.num_free + self.num_cached - num_revived

    def take(self, found: Iterable[int], num_new: int, owner: str = "") -> list[int]:
        """Holds the ``found`` blocks and ``num_new`` new ones; evicts cached blocks where it must."""
        taken = list(found)
        for block_id in taken:
            if block_id in self._cached:
                self._uncache(block_id)
                self._used_by[self._owner_of[block_id]] += 1
            self._holders[block_id] = self._holders.get(block_id, 0) + 1
        for _ in range(num_new):
            block_id = self._free.pop() if self._free else self._evict_one()
            self._holders[block_id] = 1
            self.num_fills[block_id] += 1
            self._owner_of[block_id] = owner
            taken.append(block_id)
        if num_new:
            self._used_by[owner] += num_new
        return taken

    def publish(self, block_id: int, block_hash: bytes) -> None:
        """Makes a full, computed block findable; of two equal blocks the first stays the known one."""
        if block_hash not in self._block_of and block_id not in self._hash_of:
            self._block_of[block_hash] = block_id
            self._hash_of[block_id] = block_hash

    def hash_of(self, block_id: int) -> bytes | None:
        """The hash under which a block can be found; None if it cannot."""
        return self._hash_of.get(block_id)

    def forget(self, block_hash: bytes) -> None:
        """Makes a block unfindable; it becomes free unless it is used."""
        block_id = self._block_of.pop(block_hash, None)
        if block_id is None:
            return
        del self._hash_of[block_id]
        if block_id in self._cached:
            self._uncache(block_id)
            self._tidy(self._owner_of.pop(block_id))
            self._free.append(block_id)

    def give_back(self, block_ids: list[int]) -> None:
        """Drops one reference to each block, the last block first: a hash chain is useless without its head."""
        for block_id in reversed(block_ids):
            self._holders[block_id] -= 1
            if self._holders[block_id] == 0:
                del self._holders[block_id]
                owner = self._owner_of[block_id]
                self._used_by[owner] -= 1
                if block_id in self._hash_of:
                    self._cached[block_id] = None
                    self._cached_by.setdefault(owner, OrderedDict())[block_id] = None
                else:
                    del self._owner_of[block_id]
                    self._free.append(block_id)
                self._tidy(owner)

    def check(self, held: Iterable[list[int]]) -> None:
        """Proves that every block is free, used or cached, once, and that ``held`` explains every reference."""
        everywhere = sorted([*self._free, *self._holders, *self._cached])
        assert everywhere == list(range(self.num_blocks)), "a block is lost or stands in two places"
        expected = Counter(block_id for block_ids in held for block_id in block_ids)
        assert self._holders == dict(expected), "holders are miscounted"
        assert self._hash_of == {block: key for key, block in self._block_of.items()}, "hashes disagree"
        assert self._cached.keys() <= self._hash_of.keys(), "a cached block cannot be found"
        assert self._hash_of.keys().isdisjoint(self._free), "a free block can be found"
        assert self._owner_of.keys() == {*self._holders, *self._cached}, "a block has a wrong owner"
        assert +self._used_by == Counter(self._owner_of[block_id] for block_id in self._holders), "uses are miscounted"
        cached = {block_id: owner for owner, blocks in self._cached_by.items() for block_id in blocks}
        assert cached == {block_id: self._owner_of[block_id] for block_id in self._cached}, "a cache is miscounted"

    def _evict_one(self) -> int:
        """Evicts the least recently used cached block: of the owner furthest over its limit, else of all."""
        block_id = next(
            iter(self._cached_by[owner] if (owner := self._furthest_over_limit()) is not None else self._cached)
        )
        self._uncache(block_id)
        self._tidy(self._owner_of.pop(block_id))
        del self._block_of[self._hash_of.pop(block_id)]
        return block_id

    def _furthest_over_limit(self) -> str | None:
        most, owner = 0, None
        for each, limit in self._limits.items():
            beyond = self._used_by[each] + len(self._cached_by.get(each, ())) - limit
            if beyond > most and each in self._cached_by:
                most, owner = beyond, each
        return owner

    def _uncache(self, block_id: int) -> None:
        del self._cached[block_id]
        owner = self._owner_of[block_id]
        del self._cached_by[owner][block_id]
        if not self._cached_by[owner]:
            del self._cached_by[owner]

    def _tidy(self, owner: str) -> None:
        """Forgets an owner that has no blocks."""
        if not self._used_by[owner]:
            del self._used_by[owner]
            if owner not in self._cached_by:
                self._limits.pop(owner, None)
