"""One-time codes: each lets a browser sign in as one key, once and for a minute. Knows no cookie and no page.

A code is printed by ``axon serve`` and exchanged by a page. ``live`` keeps its digest, so that every gateway knows it
and no list of codes can be read anywhere.
"""

import hashlib
import secrets

from axon.ports.live import Cache
from axon.runtime.clock import Clock

LIFETIME_S = 60.0
_NUM_BYTES = 24
_MAX_CHARS = 64


class OneTimeCodes:
    """Issues codes and redeems them."""

    def __init__(self, cache: Cache, clock: Clock) -> None:
        self._cache, self._clock = cache, clock

    async def issue(self, key_id: str) -> str:
        """Returns a new code for a key."""
        code = secrets.token_urlsafe(_NUM_BYTES)
        value = f"{key_id} {self._clock.now() + LIFETIME_S!r}".encode()
        await self._cache.put(_name(code), value, ttl_s=LIFETIME_S)
        return code

    async def redeem(self, code: str) -> str | None:
        """Returns the id of the code's key; None if it is wrong, over or was redeemed before. Of several who redeem it
        at the same time, one gets the key."""
        if len(code) > _MAX_CHARS:
            return None
        name = _name(code)
        value = await self._cache.get(name)
        if value is None:
            return None
        key_id, _, until = value.decode().partition(" ")
        is_first = await self._cache.put(f"{name}/redeemed", b"1", ttl_s=2 * LIFETIME_S, only_new=True)
        await self._cache.drop(name)
        return key_id if is_first and self._clock.now() < float(until) else None


def _name(code: str) -> str:
    return f"one-time-code/{hashlib.sha256(code.encode()).hexdigest()}"
