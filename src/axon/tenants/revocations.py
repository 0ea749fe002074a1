"""Revoked keys, known to every gateway within a second although the store is away. Knows no secret and no request.

A revocation is a mark in ``live`` and a time in the store. What the store could not be told waits in one of a few slots
in ``live``, from where control carries it over; until then the mark holds.
"""

import asyncio
import contextlib
from collections.abc import Callable, Collection

import structlog

from axon.domain.ids import new_id
from axon.errors import AxonError, DependencyDown, Unavailable
from axon.ports.live import Cache
from axon.ports.store import KeyStore
from axon.runtime.clock import Clock

_MARK_S = 24 * 3600.0
"""Renewed for as long as the store has not been told."""
_SLOTS = tuple(f"revoking/{number}" for number in range(32))
_EVERY_S = 2.0
_LATEST = "revoked-latest"
"""Changes with every mark, so that who watches many keys looks at one name."""
_UNSURE_S = 3.0
"""A key may be taken for good for so long after its mark: then its streams are younger than the mark."""

_logger = structlog.get_logger("axon.control")


class Revocations:
    """Revokes, and carries over what is left to do; the latter by ``run``."""

    def __init__(self, cache: Cache, keys: KeyStore, clock: Clock, *, leads: Callable[[], bool] = lambda: True) -> None:
        self._cache, self._keys, self._clock, self._leads = cache, keys, clock, leads
        self._latest: bytes | None = None
        self._changed_at = float("-inf")

    async def revoke(self, key_id: str) -> bool:
        """Ends a key everywhere; False when the store knows none of this id.

        Raises when it can be told to neither the store nor ``live``: then the key is as good as before.
        """
        at, marked = self._clock.now(), False
        try:
            marked = await mark(self._cache, key_id, at=at)
        except DependencyDown:
            _logger.warning("revocation.not_marked", key_id=key_id)
        try:
            known = await self._keys.revoke(key_id, at=at)
        except DependencyDown:
            if not marked:
                raise
            await postpone(self._cache, key_id, at=at)
            return True
        if not known and marked:
            with contextlib.suppress(DependencyDown):
                await self._cache.drop(_mark(key_id))
        return known

    async def revoked(self, key_id: str) -> bool:
        """Whether ``live`` knows it for revoked; where it says nothing, the store's word counts."""
        return await self._cache.get(_mark(key_id)) is not None

    async def marked(self, key_ids: Collection[str]) -> frozenset[str]:
        """Those of the keys that ``live`` knows for revoked; it is asked for a while after each revocation."""
        latest, now = await self._cache.get(_LATEST), self._clock.monotonic()
        if latest != self._latest:
            self._latest, self._changed_at = latest, now
        if now - self._changed_at > _UNSURE_S:
            return frozenset()
        return frozenset([key_id for key_id in key_ids if await self.revoked(key_id)])

    async def stored(self, key_ids: Collection[str]) -> frozenset[str]:
        """Those of the keys that the store knows for revoked."""
        return await self._keys.revoked(key_ids)

    async def run(self) -> None:
        """Looks until cancelled, while it leads."""
        while True:
            await asyncio.sleep(_EVERY_S)
            if not self._leads():
                continue
            try:
                await self.look()
            except AxonError as error:
                _logger.warning("revocation.waits", error=str(error))

    async def look(self) -> None:
        """Tells the store what it does not know yet."""
        for slot in _SLOTS:
            value = await self._cache.get(slot)
            if value is None:
                continue
            key_id, at, _ = value.decode().rsplit(" ", 2)
            for name, kept in ((_mark(key_id), b"1"), (slot, value)):
                await self._cache.put(name, kept, ttl_s=_MARK_S)
            await self._keys.revoke(key_id, at=float(at))
            if await self._cache.get(slot) == value:  # another control may have been quicker, and the slot given anew
                await self._cache.drop(slot)
            _logger.info("revocation.written", key_id=key_id)


async def mark(cache: Cache, key_id: str, *, at: float) -> bool:
    """Says in ``live`` that a key is revoked."""
    marked = await cache.put(_mark(key_id), b"1", ttl_s=_MARK_S)
    await cache.put(_LATEST, new_id(key_id, at).encode(), ttl_s=_MARK_S)
    return marked


async def postpone(cache: Cache, key_id: str, *, at: float) -> None:
    """Ends a key everywhere without the store, which is told later; raises when too many wait for that."""
    await mark(cache, key_id, at=at)
    value = f"{key_id} {at!r} {new_id('', at)}".encode()
    for slot in _SLOTS:
        if await cache.put(slot, value, ttl_s=_MARK_S, only_new=True):
            return
    raise Unavailable("Too many revocations wait for the store; try again soon.", code="too_many_revocations")


def _mark(key_id: str) -> str:
    return f"revoked/{key_id}"
