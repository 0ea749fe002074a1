"""The shelf: which KV blocks have a copy in the host's memory or in files. Decides the copies; does none itself.

A full block never changes, so it is copied to the shelf soon after it is computed, and a block that is evicted from the
device needs no copy then. Contents are known by their hashes, which are salted by tenant: no tenant finds another's.

    device ──Save──► slot of the host's memory ──Write──► place in the files
    device ◄──Load── slot of the host's memory ◄──Read─── place in the files

Saves and loads go with a step and are done once it is settled. Writes and reads are done by the files beside the steps,
which is known by their news. A content that is being copied is pinned: its slot or place is given to no other one.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from axon.engine.copies import Copies, Save
from axon.engine.protocol.messages import ShelfCounters
from axon.engine.schedule.copy_cost import CopyCosts
from axon.engine.schedule.shelf_files import Files, News, NoFiles, Place
from axon.engine.schedule.slot_cache import Kept, SlotCache

NO_TAG = b""


@dataclass(slots=True)
class Traffic:
    """Blocks that the shelf has moved since the start."""

    saved: int = 0
    loaded: int = 0
    written: int = 0
    read: int = 0
    damaged: int = 0
    """Blocks in files that could not be read as they were written, which were computed again instead."""


class Shelf:
    """Slots in the host's memory and places in files, and what is on its way between them and the device."""

    def __init__(
        self,
        num_slots: int,
        *,
        block_size: int,
        block_bytes: int = 0,
        max_copies: int,
        files: Files | None = None,
        max_age_s: float = 0.0,
        costs: CopyCosts | None = None,
    ) -> None:
        """``max_copies``: most blocks that a step loads, and that it saves; with ``max_age_s`` of 0 none is too old."""
        self.block_size, self.block_bytes = block_size, block_bytes
        self.max_copies = max(1, min(max_copies, num_slots // 2))  # what is read stays until it is loaded
        self.costs = costs or CopyCosts()
        self.traffic = Traffic()
        self._files: Files = files or NoFiles()
        self._host, self._places = SlotCache(num_slots), SlotCache(self._files.num_places)
        self._max_age_s = max_age_s
        self._offered: dict[bytes, int] = {}
        """Blocks of the device that are to be saved, by hash, the first offered first."""
        self._saving: dict[int, Kept] = {}
        """What the saves of steps in flight bring, by slot."""
        self._loading: dict[int, list[Kept]] = {}
        """What the loads of steps in flight take, by slot: several sequences may load the same."""
        self._moving: dict[bytes, tuple[Kept, Kept]] = {}
        """What is being written to files or read from them: slot and place."""
        self._tags: dict[bytes, bytes] = {}
        self._tagged: dict[bytes, set[bytes]] = {}
        self._born: OrderedDict[bytes, float] = OrderedDict()
        """Unix time at which each content came, the oldest first."""
        self.now = 0.0
        """Unix time of the last step, in seconds."""
        contents = sorted(self._files.contents(), key=lambda each: each.at)
        self._places.fill((place.key, place.number) for place in contents)
        for place in contents:
            if self._places.find(place.key) is not None:
                self._know(place.key, place.tag, place.at)

    @property
    def num_in_host(self) -> int:
        return len(self._host)

    @property
    def num_in_files(self) -> int:
        return len(self._places)

    def counters(self) -> ShelfCounters:
        """What it holds, and has moved since the start."""
        traffic, each = self.traffic, self.block_bytes
        return ShelfCounters(
            host_bytes=self.num_in_host * each,
            file_bytes=self.num_in_files * each,
            saved_bytes=traffic.saved * each,
            loaded_bytes=traffic.loaded * each,
            written_bytes=traffic.written * each,
            read_bytes=traffic.read * each,
            loaded_tokens=traffic.loaded * self.block_size,
            damaged=traffic.damaged,
        )

    @property
    def has_saves(self) -> bool:
        """Whether blocks are to be saved, now or once the files have written others."""
        return bool(self._offered) and (self._host.can_take or bool(self._moving))

    @property
    def awaits_news(self) -> bool:
        """Whether the files are writing or reading."""
        return bool(self._moving)

    def offer(self, block_id: int, key: bytes, tag: bytes = NO_TAG) -> None:
        """A block of the device is full: it is saved unless the shelf has its content."""
        if key in self._offered or key in self._moving:
            return
        if self._host.find(key) is None and self._places.find(key) is None:
            self._offered[key] = block_id
            self._know(key, tag, self.now)
        else:
            self._host.touch(key)
            self._places.touch(key)

    def num_held(self, keys: Iterable[bytes]) -> int:
        """How many of the keys, from the first on, the shelf has or is getting."""
        count = 0
        for key in keys:
            if not self._has(key):
                break
            count += 1
        return count

    def num_worth_loading(self, keys: Sequence[bytes], *, relents: bool = False) -> int:
        """How many of the keys, from the first on, come sooner from the shelf than they are computed: all that it has,
        or none. With ``relents`` a refusal makes the next one less likely."""
        num_loads = self.num_held(keys)
        if not num_loads:
            return 0
        num_reads = sum(self._host.find(key) is None for key in keys[:num_loads])
        num_tokens = num_loads * self.block_size
        if self.costs.prefers_copy(num_tokens=num_tokens, num_loads=num_loads, num_reads=num_reads):
            return num_loads
        if relents:
            self.costs.relent()
        return 0

    def take(self, keys: Sequence[bytes], most: int) -> tuple[int, ...]:
        """The slots of the first keys that can be loaded now, pinned until ``settle``; reads those behind them."""
        slots: list[int] = []
        is_unbroken = True
        for key in keys[: self.max_copies]:
            kept = self._host.find(key)
            if kept is None and not self._read(key):
                break
            is_unbroken = is_unbroken and kept is not None and kept.is_ready and len(slots) < most
            if is_unbroken and kept is not None:
                self._host.pin(kept)
                self._loading.setdefault(kept.slot, []).append(kept)
                slots.append(kept.slot)
        return tuple(slots)

    def plan_saves(self, hash_of: Callable[[int], bytes | None]) -> tuple[Save, ...]:
        """The saves of the next step: ``hash_of`` says what a block of the device holds now."""
        saves: list[Save] = []
        while self._offered and len(saves) < self.max_copies and self._host.can_take:
            key = next(iter(self._offered))
            block_id = self._offered.pop(key)
            if hash_of(block_id) != key or self._host.find(key) is not None or key in self._moving:
                self._tidy(key)  # evicted before it was saved, or it came from a file meanwhile
                continue
            kept = self._take_slot(key)
            self._saving[kept.slot] = kept
            saves.append(Save(block_id, kept.slot))
        return tuple(saves)

    def settle(self, copies: Copies) -> None:
        """The copies of a step are done: what was saved is written to the files."""
        for save in copies.saves:
            kept = self._saving.pop(save.slot)
            kept.is_ready = True
            self.traffic.saved += 1
            if kept.is_dropped or not self._write(kept):
                self._host.unpin(kept)
        for load in copies.loads:
            for slot in load.slots:
                self._release(slot)
        self.traffic.loaded += copies.num_loaded

    def take_news(self, now: float, wait_s: float = 0.0) -> None:
        """Takes in what the files have done, and forgets what is too old; waits for news, no longer than this."""
        self.now = now
        for news in self._files.news(wait_s):
            self._take(news)
        while self._max_age_s and self._born:
            key, born = next(iter(self._born.items()))
            if now - born < self._max_age_s:
                break
            self.drop(key)

    def forget(self, tag: bytes) -> list[bytes]:
        """Erases every content with the tag; returns their keys."""
        keys = list(self._tagged.get(tag, ()))
        for key in keys:
            self.drop(key)
        return keys

    def drop(self, key: bytes) -> None:
        """Erases one content, wherever it is."""
        self._offered.pop(key, None)
        self._host.drop(key)
        self._drop_place(key)
        self._unknow(key)

    def close(self) -> None:
        """Ends the files' work; what they hold stays there."""
        self._files.close()

    def check(self) -> None:
        """Proves the bookkeeping; raises AssertionError."""
        self._host.check()
        self._places.check()
        held = {*self._host, *self._places, *self._offered}
        assert self._tags.keys() == self._born.keys() == held, "something is known of a content that is nowhere"
        tagged = {key: tag for tag, keys in self._tagged.items() for key in keys}
        assert tagged == {key: tag for key, tag in self._tags.items() if tag}, "tags disagree"

    # --- one content

    def _has(self, key: bytes) -> bool:
        if self._host.find(key) is not None:
            return True
        place = self._places.find(key)
        return place is not None and place.is_ready

    def _know(self, key: bytes, tag: bytes, at: float) -> None:
        if key not in self._tags:
            self._tags[key], self._born[key] = tag, at
            if tag:
                self._tagged.setdefault(tag, set()).add(key)

    def _tidy(self, key: bytes) -> None:
        """Forgets what is known of a content that is nowhere any more."""
        if key not in self._offered and self._host.find(key) is None and self._places.find(key) is None:
            self._unknow(key)

    def _unknow(self, key: bytes) -> None:
        tag = self._tags.pop(key, NO_TAG)
        self._born.pop(key, None)
        if tag:
            self._tagged[tag].discard(key)
            if not self._tagged[tag]:
                del self._tagged[tag]

    def _take_slot(self, key: bytes) -> Kept:
        kept, given_up = self._host.take(key)
        if given_up is not None:
            self._tidy(given_up)
        return kept

    def _release(self, slot: int) -> None:
        several = self._loading[slot]
        self._host.unpin(several.pop())
        if not several:
            del self._loading[slot]

    def _write(self, kept: Kept) -> bool:
        """Writes a content to the files, its slot pinned meanwhile; False if they take none."""
        if not self._places.can_take:
            return False
        place, given_up = self._places.take(kept.key)
        if given_up is not None:
            self._tidy(given_up)
        self._moving[kept.key] = kept, place
        tag, at = self._tags[kept.key], self._born[kept.key]
        self._files.write(Place(place.slot, kept.key, tag, at), kept.slot)
        return True

    def _read(self, key: bytes) -> bool:
        """Begins to read a content into the host's memory; False if it is in no file or there is no slot."""
        place = self._places.find(key)
        if place is None or not place.is_ready or not self._host.can_take:
            return False
        if key in self._moving:
            return False  # its slot was dropped while it was written: a matter of moments
        slot = self._take_slot(key)
        self._places.pin(place)
        self._moving[key] = slot, place
        self._files.read(Place(place.slot, key, self._tags[key], self._born[key]), slot.slot)
        return True

    def _take(self, news: News) -> None:
        slot, place = self._moving.pop(news.key)
        if news.is_read:
            self._take_read(slot, place, news)
        else:
            self.traffic.written += news.is_good
            place.is_ready = True
            self._host.unpin(slot)
            if not news.is_good:
                self._drop_place(news.key, place)
            self._unpin_place(place)
            self._tidy(news.key)

    def _take_read(self, slot: Kept, place: Kept, news: News) -> None:
        slot.is_ready = True
        if news.is_good:
            self.traffic.read += 1
            self.costs.read(1, news.seconds)
        else:
            self.traffic.damaged += 1
            if not slot.is_dropped:
                self._host.drop(news.key)
            self._drop_place(news.key, place)
        self._host.unpin(slot)
        self._unpin_place(place)
        self._tidy(news.key)

    def _drop_place(self, key: bytes, only: Kept | None = None) -> None:
        """Forgets a content in the files and erases it there, now or with its last pin."""
        if only is not None and only.is_dropped:
            return
        number = self._places.drop(key)
        if number is not None:
            self._files.erase(number)

    def _unpin_place(self, place: Kept) -> None:
        if self._places.unpin(place):
            self._files.erase(place.slot)
