"""Compiled grammars, kept by their text: the ones used last, within bounds. Compiles nothing itself."""

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

Compiled = TypeVar("Compiled")


class CompiledCache(Generic[Compiled]):
    """Grammars by their text, for several threads.

    An entry costs its bytes of text: what is compiled from it grows with them.
    """

    def __init__(self, *, max_entries: int, max_bytes: int) -> None:
        self._max_entries, self._max_bytes = max_entries, max_bytes
        self._entries: OrderedDict[str, Compiled] = OrderedDict()
        self.num_bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, text: str) -> Compiled | None:
        """The compiled grammar, which counts as used now; None if it is not kept."""
        with self._lock:
            if text in self._entries:
                self._entries.move_to_end(text)
            return self._entries.get(text)

    def put(self, text: str, compiled: Compiled) -> None:
        """Keeps a grammar, and forgets those used longest ago that have no room beside it."""
        with self._lock:
            if text not in self._entries:
                self.num_bytes += len(text.encode())
            self._entries[text] = compiled
            self._entries.move_to_end(text)
            while len(self._entries) > self._max_entries or self.num_bytes > self._max_bytes:
                forgotten, _ = self._entries.popitem(last=False)
                self.num_bytes -= len(forgotten.encode())
