"""Records when each key was last used: noted in memory, written to the store in batches. Knows no request.

No request waits for the store. A process that dies loses the notes that it has not written yet.
"""

import asyncio
from collections import OrderedDict
from itertools import islice

import structlog

from axon.errors import AxonError
from axon.ports.store import KeyLookup
from axon.runtime.clock import Clock

_WRITE_EVERY_S = 5.0
_RESOLUTION_S = 60.0
"""A key is noted at most once in this time; so a recorded last use is at most this much too old."""
_MAX_KEYS = 10_000
"""Size of the LRU cache of keys that were noted."""
_BATCH_KEYS = 500
"""Number of keys in one write, which a store finishes well within its timeout."""

_logger = structlog.get_logger("axon.gateway")


class LastUse:
    """Remembers uses of keys (``note``, no I/O) and writes them to the store in the background (``run``)."""

    def __init__(self, keys: KeyLookup, clock: Clock) -> None:
        self._keys, self._clock = keys, clock
        self._noted: OrderedDict[str, float] = OrderedDict()
        self._unwritten: dict[str, float] = {}

    def note(self, key_id: str) -> None:
        """Notes that the key is used now."""
        now = self._clock.now()
        if now - self._noted.get(key_id, 0.0) < _RESOLUTION_S:
            return
        self._noted[key_id] = self._unwritten[key_id] = now
        self._noted.move_to_end(key_id)
        if len(self._noted) > _MAX_KEYS:
            forgotten, _ = self._noted.popitem(last=False)
            self._unwritten.pop(forgotten, None)

    async def run(self) -> None:
        """Writes every few seconds until cancelled; what the store does not accept is written the next time."""
        while True:
            await asyncio.sleep(_WRITE_EVERY_S)
            try:
                await self.write()
            except AxonError as error:
                num_keys = len(self._unwritten)
                _logger.warning("last_use.not_written", num_keys=num_keys, error=str(error), retry_s=_WRITE_EVERY_S)

    async def write(self) -> None:
        """Writes everything that was noted since the last write, batch by batch."""
        while used_at := dict(islice(self._unwritten.items(), _BATCH_KEYS)):
            await self._keys.touch(used_at)
            # A key that was noted again during the write stays, with its newer time.
            self._unwritten = {key: at for key, at in self._unwritten.items() if used_at.get(key) != at}
