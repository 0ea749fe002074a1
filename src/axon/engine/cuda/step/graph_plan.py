"""Which CUDA graphs are missing, and which of them is recorded next. Records none.

The largest go first, because the others then share their memory; after them the one that a step has just done without.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, order=True)
class GraphKey:
    """One graph: a step of decodes, of short runs, or with prompt chunks, and its number of rows."""

    kind: Literal["chunks", "decodes", "runs"]
    size: int
    num_pages: int = 0
    """Pages of a row's LoRA adapter for which there is room; 0: no row has one."""


class GraphPlan:
    """The graphs that are missing; no I/O, no clock. Those with adapters are missing once a step did without one."""

    def __init__(
        self, *, decode_sizes: Sequence[int], chunk_sizes: Sequence[int], run_sizes: Sequence[int] = ()
    ) -> None:
        decodes = [GraphKey("decodes", size) for size in sorted(decode_sizes)]
        chunks = [GraphKey("chunks", size) for size in sorted(chunk_sizes)]
        self.largest = [*chunks[-1:], *decodes[-1:]]
        """The largest of each kind."""
        runs = [GraphKey("runs", size) for size in sorted(run_sizes)]
        self._missing = dict.fromkeys([*self.largest, *decodes, *chunks, *runs])
        self._missed: GraphKey | None = None
        self._adapted: set[GraphKey] = set()
        self._is_full = False

    @property
    def is_done(self) -> bool:
        """Whether none is missing."""
        return not self._missing

    def miss(self, key: GraphKey) -> None:
        """Notes that a step did without this graph."""
        self._missed = key
        if key.num_pages and key not in self._adapted and not self._is_full:
            self._adapted.add(key)
            self._missing[key] = None

    def take(self) -> GraphKey | None:
        """The graph to record now, which is missing no more; None if none is."""
        key = self._missed if self._missed in self._missing else next(iter(self._missing), None)
        if key is not None:
            del self._missing[key]
        return key

    def give_up(self) -> None:
        """Counts none as missing: there is no memory for more."""
        self._missing.clear()
        self._is_full = True
