"""The files of a shelf in memory, as slow and as faulty as a test wants them. Holds no assertions."""

from collections import deque
from collections.abc import Iterable

from axon.engine.schedule.shelf_files import News, Place


class TwinFiles:
    """Does what it was asked for only when ``work`` says so, in order."""

    def __init__(self, num_places: int, *, at_once: bool = False) -> None:
        self.num_places = num_places
        self.at_once = at_once
        self.memory: memoryview = memoryview(b"")
        self.block_bytes = 0
        self.held: dict[int, tuple[Place, bytes]] = {}
        self.damages_next = False
        self._asked: deque[tuple[str, Place | int, int]] = deque()
        self._news: list[News] = []

    def attach(self, memory: memoryview, block_bytes: int) -> None:
        self.memory, self.block_bytes = memory, block_bytes

    @property
    def num_asked(self) -> int:
        return len(self._asked)

    def contents(self) -> Iterable[Place]:
        return [place for place, _ in self.held.values()]

    def write(self, place: Place, slot: int) -> None:
        self._asked.append(("write", place, slot))

    def read(self, place: Place, slot: int) -> None:
        self._asked.append(("read", place, slot))

    def erase(self, number: int) -> None:
        self._asked.append(("erase", number, 0))

    def news(self, wait_s: float = 0.0) -> list[News]:
        if self.at_once or wait_s:
            self.work(len(self._asked))
        news, self._news = self._news, []
        return news

    def close(self) -> None:
        self.work(len(self._asked))

    def work(self, count: int) -> None:
        for _ in range(min(count, len(self._asked))):
            verb, place, slot = self._asked.popleft()
            if isinstance(place, int):
                self.held.pop(place, None)
                continue
            slice_of = slice(slot * self.block_bytes, (slot + 1) * self.block_bytes)
            if verb == "write":
                self.held[place.number] = place, bytes(self.memory[slice_of])
                self._news.append(News(place.key, is_read=False, is_good=True, seconds=1e-6))
                continue
            held = self.held.get(place.number)
            is_good = held is not None and held[0].key == place.key and not self.damages_next
            self.damages_next = False
            if is_good and held is not None:
                self.memory[slice_of] = held[1]
            else:
                self.memory[slice_of] = bytes(b"\xee" * self.block_bytes)
            self._news.append(News(place.key, is_read=True, is_good=is_good, seconds=1e-6))
