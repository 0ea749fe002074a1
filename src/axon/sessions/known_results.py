"""The results of the grammars that were compiled last, bounded in number and size. Knows no compiler."""

from collections import OrderedDict

from axon.text.compiler.messages import Result

_ENTRY_BYTES = 256
"""What an entry takes beside its texts."""


class KnownResults:
    """Results by the digests of their tasks; those that were asked for longest ago are forgotten first."""

    def __init__(self, *, max_entries: int = 1024, max_bytes: int = 8 << 20) -> None:
        self._max_entries, self._max_bytes = max_entries, max_bytes
        self._results: OrderedDict[bytes, Result] = OrderedDict()
        self._num_bytes = 0

    def __len__(self) -> int:
        return len(self._results)

    def get(self, digest: bytes) -> Result | None:
        """Returns what is known; None if nothing is."""
        if digest in self._results:
            self._results.move_to_end(digest)
        return self._results.get(digest)

    def keep(self, digest: bytes, result: Result) -> None:
        """Remembers a result, and forgets others for it."""
        self._forget(digest)
        self._results[digest] = result
        self._num_bytes += result.num_bytes + _ENTRY_BYTES
        while len(self._results) > self._max_entries or self._num_bytes > self._max_bytes:
            self._forget(next(iter(self._results)))

    def _forget(self, digest: bytes) -> None:
        if result := self._results.pop(digest, None):
            self._num_bytes -= result.num_bytes + _ENTRY_BYTES
