"""When keys were last used, written now and then and in nobody's way. A value that is lost costs a minute."""

import asyncio
from collections import OrderedDict
from itertools import islice

import structlog

from axon.errors import AxonError
from axon.ports.store import KeyLookup
from axon.runtime.clock import Clock

_EVERY_S = 5.0
_KEEP_S = 60.0
"""A key that was written so lately is not written again."""
_MAX_KEYS = 10_000
_BATCH = 500
"""As many as a store writes well within its time."""

_logger = structlog.get_logger("axon.gateway")


class LastUse:
    """``note`` costs nothing; ``run`` writes, from the start on."""

    def __init__(self, keys: KeyLookup, clock: Clock) -> None:
        self._keys, self._clock = keys, clock
        self._noted: OrderedDict[str, float] = OrderedDict()
        self._unwritten: dict[str, float] = {}

    def note(self, key_id: str) -> None:
        """The key was used now."""
        now = self._clock.now()
        if now - self._noted.get(key_id, 0.0) < _KEEP_S:
            return
        self._noted[key_id] = self._unwritten[key_id] = now
        self._noted.move_to_end(key_id)
        if len(self._noted) > _MAX_KEYS:
            forgotten, _ = self._noted.popitem(last=False)
            self._unwritten.pop(forgotten, None)

    async def run(self) -> None:
        """Writes until cancelled; what a silent store does not take waits for the next time."""
        while True:
            await asyncio.sleep(_EVERY_S)
            try:
                await self.write()
            except AxonError as error:
                _logger.warning("last_use.not_written", error=str(error))

    async def write(self) -> None:
        """What was noted since the last time, a batch after the other."""
        while used_at := dict(islice(self._unwritten.items(), _BATCH)):
            await self._keys.touch(used_at)
            # A key that was used again meanwhile stays.
            self._unwritten = {key: at for key, at in self._unwritten.items() if used_at.get(key) != at}
