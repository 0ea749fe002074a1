"""Revocation of keys, effective at every gateway within a second even while the store is away. Knows no secret.

A revocation is a flag in ``live`` and a time in the store. If the store is away, the revocation waits in one of 32
slots in ``live`` until control writes it to the store; meanwhile the flag is in force.
"""

import asyncio
import contextlib
from collections.abc import Callable, Collection
from urllib.parse import quote, unquote

import structlog

from axon.domain.audit import AuditEntry, new_entry
from axon.domain.ids import new_id
from axon.errors import AxonError, DependencyDown, Unavailable
from axon.ports.live import Cache
from axon.ports.store import KeyStore
from axon.runtime.clock import Clock

_MARK_S = 24 * 3600.0
"""Seconds that a flag lasts; it is renewed until the store has the revocation."""
_SLOTS = tuple(f"revoking/{number}" for number in range(32))
_EVERY_S = 2.0
_LOOKS_PER_ROUND = 30
"""While nothing waits, all slots are read once in so many looks, and otherwise the first, which is filled first."""
_LATEST = "revoked-latest"
"""Cache key whose value changes with every revocation, so that watching many keys takes one read."""
_UNSURE_S = 3.0
"""Seconds after a revocation in which flags are read: a gateway may still have accepted the key for a moment after."""

_logger = structlog.get_logger("axon.control")


class Revocations:
    """Revokes keys; ``run`` writes postponed revocations to the store."""

    def __init__(self, cache: Cache, keys: KeyStore, clock: Clock, *, leads: Callable[[], bool] = lambda: True) -> None:
        self._cache, self._keys, self._clock, self._leads = cache, keys, clock, leads
        self._latest: bytes | None = None
        self._changed_at = float("-inf")
        self._num_quiet = 0
        """How many looks in a row have found nothing."""

    async def revoke(self, key_id: str, entry: AuditEntry | None = None) -> bool:
        """Revokes a key everywhere; False when the store has no such key. The audit trail gets ``entry``; where the
        store is away, it learns later who revoked the key, and when.

        Raises ``DependencyDown`` when neither the store nor ``live`` could be written: then the key stays valid.
        """
        at, marked = self._clock.now(), False
        try:
            marked = await mark(self._cache, key_id, at=at)
        except DependencyDown:
            _logger.warning("revocation.not_marked", key_id=key_id)
        try:
            known = await self._keys.revoke(key_id, at=at, entry=entry)
        except DependencyDown:
            if not marked:
                raise
            await postpone(self._cache, key_id, at=at, actor=entry.actor if entry else "")
            return True
        if not known and marked:
            with contextlib.suppress(DependencyDown):
                await self._cache.drop(_mark(key_id))
        return known

    async def revoked(self, key_id: str) -> bool:
        """Whether the key is flagged in ``live``; without a flag, the store decides."""
        return await self._cache.get(_mark(key_id)) is not None

    async def marked(self, key_ids: Collection[str]) -> frozenset[str]:
        """The subset of the keys that are flagged in ``live``; reads the flags only for a while after a revocation."""
        latest, now = await self._cache.get(_LATEST), self._clock.monotonic()
        if latest != self._latest:
            self._latest, self._changed_at = latest, now
        if now - self._changed_at > _UNSURE_S:
            return frozenset()
        return frozenset([key_id for key_id in key_ids if await self.revoked(key_id)])

    async def stored(self, key_ids: Collection[str]) -> frozenset[str]:
        """The subset of the keys that the store has as revoked."""
        return await self._keys.revoked(key_ids)

    async def run(self) -> None:
        """Writes postponed revocations every two seconds while this process leads, until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_S)
            if not self._leads():
                continue
            try:
                await self.look()
            except AxonError as error:
                _logger.warning("revocation.waits", error=str(error))

    async def look(self) -> None:
        """Writes postponed revocations to the store. Slots are filled in their order, so that an empty first one means
        that none waits, but for those that a control left behind; they are found within a minute."""
        num_quiet, self._num_quiet = self._num_quiet, self._num_quiet + 1
        for slot in _SLOTS if num_quiet % _LOOKS_PER_ROUND == 0 else _SLOTS[:1]:
            value = await self._cache.get(slot)
            if value is None:
                continue
            self._num_quiet = 0  # before it is written: after a failure the next look is at all of them
            key_id, at, actor = _read(value)
            for name, kept in ((_mark(key_id), b"1"), (slot, value)):
                await self._cache.put(name, kept, ttl_s=_MARK_S)
            await self._keys.revoke(key_id, at=at, entry=_entry(key_id, at, actor))
            # Another control may have written it meanwhile, and the slot may be in use again.
            if await self._cache.get(slot) == value:
                await self._cache.drop(slot)
            _logger.info("revocation.written", key_id=key_id)


async def mark(cache: Cache, key_id: str, *, at: float) -> bool:
    """Flags a key as revoked in ``live``."""
    marked = await cache.put(_mark(key_id), b"1", ttl_s=_MARK_S)
    await cache.put(_LATEST, new_id(key_id, at).encode(), ttl_s=_MARK_S)
    return marked


async def postpone(cache: Cache, key_id: str, *, at: float, actor: str = "") -> None:
    """Revokes a key without the store, which is written later; raises ``Unavailable`` when all slots are in use."""
    await mark(cache, key_id, at=at)
    value = _written(key_id, at, actor)
    for slot in _SLOTS:
        if await cache.put(slot, value, ttl_s=_MARK_S, only_new=True):
            return
    raise Unavailable("Too many revocations wait for the store; try again soon.", code="too_many_revocations")


def _written(key_id: str, at: float, actor: str) -> bytes:
    """The value of a slot: three words, of which controls of an earlier release read the first two alone. The third is
    unlike any other, and has the actor percent-encoded behind a slash."""
    return f"{key_id} {at!r} {new_id('', at)}/{quote(actor, safe='')}".encode()


def _read(value: bytes) -> tuple[str, float, str]:
    """The key, the time and the actor of a slot's value; a gateway of an earlier release wrote no actor."""
    key_id, at, rest = value.decode().rsplit(" ", 2)
    return key_id, float(at), unquote(rest.partition("/")[2])


def _entry(key_id: str, at: float, actor: str) -> AuditEntry:
    return new_entry(at=at, actor=actor or "unknown", kind="key", name=key_id, action="revoke")


def _mark(key_id: str) -> str:
    return f"revoked/{key_id}"
