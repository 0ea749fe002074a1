"""The files of a shelf in a folder: two threads write and read a slab beside the steps. Decides nothing."""

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Iterable

from axon.engine.schedule.shelf_files import News, Place
from axon.engine.shelf.home import Home
from axon.engine.shelf.slab import Slab

logger = logging.getLogger(__name__)


class FolderFiles:
    """A slab in a home of its own, and the threads that move blocks between it and the slots' memory."""

    def __init__(self, home: Home, slab: Slab, memory: memoryview) -> None:
        self._home, self._slab, self._memory = home, slab, memory
        self._writes: queue.SimpleQueue[tuple[Place | int, int] | None] = queue.SimpleQueue()
        """Writes of a slot, and erasures of a place, in order."""
        self._reads: queue.SimpleQueue[tuple[Place, int] | None] = queue.SimpleQueue()
        self._news: deque[News] = deque()
        self._has_news = threading.Event()
        self._has_failed = False
        self._threads = [
            threading.Thread(target=self._keep_writing, name="axon-kv-write", daemon=True),
            threading.Thread(target=self._keep_reading, name="axon-kv-read", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def num_places(self) -> int:
        return self._slab.num_places

    def contents(self) -> Iterable[Place]:
        """What the slab held when it was opened."""
        return list(self._slab.contents())

    def write(self, place: Place, slot: int) -> None:
        """Has a slot written to a place."""
        self._writes.put((place, slot))

    def read(self, place: Place, slot: int) -> None:
        """Has a place read into a slot."""
        self._reads.put((place, slot))

    def erase(self, number: int) -> None:
        """Has a place erased, behind the writes asked for before."""
        self._writes.put((number, 0))

    def news(self, wait_s: float = 0.0) -> list[News]:
        """What has ended since the last call; waits for some, no longer than this."""
        if not self._news:
            if wait_s <= 0:
                return []
            self._has_news.wait(wait_s)
        self._has_news.clear()
        news: list[News] = []
        while self._news:
            news.append(self._news.popleft())
        return news

    def close(self) -> None:
        """Writes what it was asked to, and lets the folder go; a second call does nothing."""
        if not self._threads:
            return
        self._writes.put(None)
        self._reads.put(None)
        for thread in self._threads:
            thread.join()
        self._threads = []
        self._slab.close()
        self._home.close()

    def _keep_writing(self) -> None:
        while (asked := self._writes.get()) is not None:
            place, slot = asked
            began = time.perf_counter()
            try:
                if isinstance(place, int):
                    self._slab.erase(place)
                    continue
                self._slab.write(place, self._slot(slot))
                is_good = True
            except OSError as error:
                self._fail(error)
                is_good = False
            if not isinstance(place, int):
                self._tell(News(place.key, is_read=False, is_good=is_good, seconds=time.perf_counter() - began))

    def _keep_reading(self) -> None:
        asked = deque[tuple[Place, int] | None]()
        while True:
            if not asked:
                asked.append(self._reads.get())
            while not self._reads.empty():
                self._expect(self._reads.get(), asked)
            first = asked.popleft()
            if first is None:
                return
            place, slot = first
            began = time.perf_counter()
            try:
                is_good = self._slab.read(place, self._slot(slot))
            except OSError as error:
                self._fail(error)
                is_good = False
            self._tell(News(place.key, is_read=True, is_good=is_good, seconds=time.perf_counter() - began))

    def _expect(self, each: tuple[Place, int] | None, asked: deque[tuple[Place, int] | None]) -> None:
        """Has the system fetch the blocks that wait to be read while others are read."""
        if each is not None:
            self._slab.expect(each[0].number)
        asked.append(each)

    def _slot(self, slot: int) -> memoryview:
        size = self._slab.block_bytes
        return self._memory[slot * size : (slot + 1) * size]

    def _tell(self, news: News) -> None:
        self._news.append(news)
        self._has_news.set()

    def _fail(self, error: OSError) -> None:
        """Says the first error; the blocks are computed again."""
        if not self._has_failed:
            self._has_failed = True
            logger.warning(
                "a KV block could not be moved to or from engine.kv_folder: %s. Such blocks are computed again",
                error,
                extra={"axon_event": "engine.kv_folder_fails"},
            )
