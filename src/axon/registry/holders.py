"""Which revision of the registry each gateway holds, announced in ``live``. Knows no record.

A version is removed only when nobody holds a revision from before it was closed. ``live`` can tell the value of a key
and cannot list keys, so every holder takes one of a fixed number of slots.
"""

import asyncio
import zlib
from collections.abc import Mapping

from axon.ports.live import Cache

LEASE_S = 2.0
"""Seconds within which a holder announces itself again."""
SILENT_S = 3 * LEASE_S
"""Seconds after which a holder that is silent is gone: its announcement expires. Whoever removes a version waits this
long after ``live`` has lost its memory."""
NUM_SLOTS = 256
_AT_ONCE = 32


class Holders:
    """The announcements of all holders."""

    def __init__(self, cache: Cache, *, num_slots: int = NUM_SLOTS) -> None:
        self._cache, self._num_slots = cache, num_slots
        self._own: dict[str, int] = {}
        """Slots of the holders that this process announces."""

    async def announce(self, holder: str, revision: int) -> bool:
        """Says for ``SILENT_S`` seconds that the holder holds this revision; False when every slot is taken."""
        value = f"{revision} {holder}".encode()
        own = self._own.get(holder)
        if own is not None and await self._is_mine(own, holder):
            return await self._cache.put(_key(own), value, ttl_s=SILENT_S)
        first = zlib.crc32(holder.encode())
        for offset in range(self._num_slots):
            slot = (first + offset) % self._num_slots
            if await self._cache.put(_key(slot), value, ttl_s=SILENT_S, only_new=True):
                self._own[holder] = slot
                return True
        return False

    async def withdraw(self, holder: str) -> None:
        """Takes the announcement back: the holder begins no turn any more."""
        slot = self._own.pop(holder, None)
        if slot is not None and await self._is_mine(slot, holder):
            await self._cache.drop(_key(slot))

    async def all(self) -> Mapping[str, int]:
        """The revision that each holder holds, by its id."""
        found: dict[str, int] = {}
        for first in range(0, self._num_slots, _AT_ONCE):
            slots = range(first, min(first + _AT_ONCE, self._num_slots))
            for value in await asyncio.gather(*(self._cache.get(_key(slot)) for slot in slots)):
                if value is not None:
                    revision, _, holder = value.decode().partition(" ")
                    found[holder] = int(revision)
        return found

    async def behind(self, revision: int) -> frozenset[str]:
        """Ids of the holders that hold a lower revision than this one."""
        return frozenset(holder for holder, held in (await self.all()).items() if held < revision)

    async def _is_mine(self, slot: int, holder: str) -> bool:
        value = await self._cache.get(_key(slot))
        return value is not None and value.decode().partition(" ")[2] == holder


def _key(slot: int) -> str:
    return f"registry/holder/{slot}"
