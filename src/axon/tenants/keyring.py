"""Administration of API keys: create, rotate, revoke. A secret is returned once and stored nowhere."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace

from axon.domain.tenants.key import HOLDER, Key, KeyText, Scope, digest, new_key_text
from axon.domain.tenants.tenant import check_name
from axon.errors import Conflict, InvalidInput, NotFound
from axon.ports.store import KeyStore
from axon.runtime.clock import Clock

MAX_LIFE_S = 100 * 365 * 24 * 3600.0
MAX_OVERLAP_S = 30 * 24 * 3600.0


class Keyring:
    """Operations of the admin API and the command line. ``pepper`` is read only when a key is created."""

    def __init__(
        self, keys: KeyStore, revoke: Callable[[str], Awaitable[bool]], pepper: Callable[[], bytes], clock: Clock
    ) -> None:
        self._keys, self._revoke = keys, revoke
        self._pepper, self._clock = pepper, clock

    async def all(self, *, tenant: str | None = None) -> Sequence[Key]:
        """All keys, or one tenant's, the oldest first."""
        return await self._keys.all(tenant=tenant)

    async def get(self, key_id: str) -> Key:
        """Returns the key; raises ``NotFound``."""
        found = await self._keys.find(key_id)
        if found is None:
            raise _unknown(key_id)
        return found

    async def create(
        self, tenant: str, *, name: str = "", scopes: Collection[Scope] = HOLDER, expires_in_s: float | None = None
    ) -> tuple[Key, str]:
        """Creates a key of a tenant; returns it with its text, to be shown once."""
        check_name(name)
        if not scopes:
            raise InvalidInput("A key needs at least one scope.", param="scopes")
        parts, text = new_key_text()
        key = Key(
            id=parts.id,
            tenant=tenant,
            digest=self._digest(parts),
            name=name,
            scopes=frozenset(scopes),
            created_at=self._clock.now(),
            expires_at=self._expiry(expires_in_s),
        )
        await self._keys.add(key)
        return key, text

    async def rotate(self, key_id: str, *, overlap_s: float, expires_in_s: float | None = None) -> tuple[Key, str]:
        """Creates a key like ``key_id``, which stays valid for ``overlap_s`` seconds. The new key gets the old one's
        lifetime unless ``expires_in_s`` is given."""
        if not 0 <= overlap_s <= MAX_OVERLAP_S:
            raise InvalidInput(f"'overlap_s' must be from 0 to {MAX_OVERLAP_S:.0f}.", param="overlap_s")
        now, old = self._clock.now(), await self.get(key_id)
        if not old.valid(now):
            raise Conflict(f"The key {key_id} is {old.state(now)}; make a new one instead.", code="key_ended")
        if expires_in_s is None and old.expires_at is not None:
            expires_in_s = old.expires_at - old.created_at
        parts, text = new_key_text()
        new = replace(
            old,
            id=parts.id,
            digest=self._digest(parts),
            created_at=now,
            expires_at=self._expiry(expires_in_s),
            last_used_at=None,
            previous=old.id,
        )
        if not await self._keys.rotate(new, until=now + overlap_s):
            raise _unknown(key_id)
        return new, text

    async def revoke(self, key_id: str) -> None:
        """Revokes a key; every gateway refuses it within a second."""
        if not await self._revoke(key_id):
            raise _unknown(key_id)

    def _digest(self, parts: KeyText) -> bytes:
        return digest(self._pepper(), parts.secret)

    def _expiry(self, in_s: float | None) -> float | None:
        if in_s is None:
            return None
        if not 0 < in_s <= MAX_LIFE_S:
            raise InvalidInput("'expires_in_s' must be more than 0 and at most a hundred years.", param="expires_in_s")
        return self._clock.now() + in_s


def _unknown(key_id: str) -> NotFound:
    return NotFound(f"There is no key '{key_id}'.", code="key_not_found", param="key")
