"""Numbered slots that keep contents by their hash, the least recently used given up first. Knows no memory, no files.

A slot is free, or it keeps a content that is ready, or that is still on its way (not ready). A pinned content is being
copied: its slot is not given to another one. A content that is dropped while it is pinned can no longer be found, and
its slot becomes free with its last pin.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Kept:
    """A content in a slot."""

    key: bytes
    slot: int
    is_ready: bool = False
    num_pins: int = 1
    is_dropped: bool = False


class SlotCache:
    """Hands out slots 0 … num_slots-1 and finds contents by their keys."""

    def __init__(self, num_slots: int) -> None:
        self.num_slots = num_slots
        self._num_begun = 0
        """Slots from this one on have never been used."""
        self._free: list[int] = []
        """Slots before that one that are free."""
        self._kept: dict[bytes, Kept] = {}
        self._idle: OrderedDict[bytes, Kept] = OrderedDict()  # ready and not pinned, least recently used first
        self._leaving: set[Kept] = set()
        """Contents that were dropped while they were pinned."""

    def __len__(self) -> int:
        """Number of contents that can be found."""
        return len(self._kept)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._kept)

    @property
    def num_free(self) -> int:
        return self.num_slots - self._num_begun + len(self._free)

    @property
    def can_take(self) -> bool:
        """Whether ``take`` would find a slot."""
        return bool(self._free or self._idle) or self._num_begun < self.num_slots

    def find(self, key: bytes) -> Kept | None:
        """The content with this key, ready or not."""
        return self._kept.get(key)

    def take(self, key: bytes) -> tuple[Kept, bytes | None]:
        """A slot for a new content, pinned and not ready; with it the key of the content that was given up for it."""
        assert key not in self._kept, "a content is kept once"
        given_up: bytes | None = None
        if self._free:
            slot = self._free.pop()
        elif self._num_begun < self.num_slots:
            slot, self._num_begun = self._num_begun, self._num_begun + 1
        else:
            given_up, old = self._idle.popitem(last=False)
            del self._kept[given_up]
            slot = old.slot
        kept = self._kept[key] = Kept(key, slot)
        return kept, given_up

    def fill(self, contents: Iterable[tuple[bytes, int]]) -> None:
        """Takes in contents that are known to be in slots, all of which are free; of two in a slot, or of two that are
        equal, the last one."""
        assert not self._kept, "filled once, at the start"
        key_in = {slot: key for key, slot in contents if 0 <= slot < self.num_slots}
        for slot, key in key_in.items():
            self._kept.pop(key, None)
            self._kept[key] = Kept(key, slot, is_ready=True, num_pins=0)
        self._idle.update(self._kept)
        taken = {kept.slot for kept in self._kept.values()}
        self._num_begun = max(taken, default=-1) + 1
        self._free = [slot for slot in range(self._num_begun - 1, -1, -1) if slot not in taken]

    def pin(self, kept: Kept) -> None:
        """Keeps the slot from being given to another content until ``unpin``."""
        kept.num_pins += 1
        self._idle.pop(kept.key, None)

    def unpin(self, kept: Kept) -> bool:
        """Takes one pin back; True if that has freed the slot of a dropped content."""
        kept.num_pins -= 1
        assert kept.num_pins >= 0, "more pins are taken back than were given"
        if kept.num_pins:
            return False
        if kept.is_dropped:
            self._leaving.remove(kept)
            self._free.append(kept.slot)
            return True
        assert kept.is_ready, "an unpinned content is on its way for ever"
        self._idle[kept.key] = kept
        return False

    def drop(self, key: bytes) -> int | None:
        """Forgets a content; returns its slot if that is free now, None if it is unknown or still pinned."""
        kept = self._kept.pop(key, None)
        if kept is None:
            return None
        kept.is_dropped = True
        if kept.num_pins:
            self._leaving.add(kept)
            return None
        del self._idle[key]
        self._free.append(kept.slot)
        return kept.slot

    def touch(self, key: bytes) -> None:
        """Counts a content as just used."""
        if key in self._idle:
            self._idle.move_to_end(key)

    def check(self) -> None:
        """Proves that every slot is free or keeps one content; raises AssertionError."""
        kept = [*self._kept.values(), *self._leaving]
        slots = Counter([*self._free, *(each.slot for each in kept)])
        assert sorted(slots.elements()) == list(range(self._num_begun)), "a slot is lost or stands in two places"
        assert self._num_begun <= self.num_slots, "more slots are used than there are"
        idle = {key for key, each in self._kept.items() if not each.num_pins}
        assert self._idle.keys() == idle, "a content that could be given up is not known as such, or the other way"
        assert all(self._kept[key].is_ready for key in idle), "a content is on its way and nobody brings it"
        assert all(each.num_pins and each.is_dropped for each in self._leaving), "a dropped content stays"
