"""Administration of API keys: create, rotate, revoke. A secret is returned once and stored nowhere."""

import contextlib
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace

from axon.domain.audit import AuditEntry, new_entry
from axon.domain.tenants.key import HOLDER, Key, KeyText, Scope, digest, new_key_text
from axon.domain.tenants.tenant import check_name
from axon.errors import Conflict, DependencyDown, InvalidInput, NotFound
from axon.ports.store import KeyStore
from axon.runtime.clock import Clock
from axon.tenants.facts import Facts, key_record

MAX_LIFE_S = 100 * 365 * 24 * 3600.0
MAX_OVERLAP_S = 30 * 24 * 3600.0


class Keyring:
    """Operations of the admin API and the command line. ``pepper`` is read only when a key is created; ``actor`` is who
    the audit trail names."""

    def __init__(
        self,
        keys: KeyStore,
        revoke: Callable[[str, AuditEntry], Awaitable[bool]],
        pepper: Callable[[], bytes],
        clock: Clock,
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
        self,
        tenant: str,
        *,
        name: str = "",
        scopes: Collection[Scope] = HOLDER,
        expires_in_s: float | None = None,
        actor: str,
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
        await self._keys.add(key, entry=self._entry(actor, key.id, "add", after=self._record(key)))
        return key, text

    async def rotate(
        self, key_id: str, *, overlap_s: float, expires_in_s: float | None = None, actor: str
    ) -> tuple[Key, str]:
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
        after = {**self._record(new), "old_expires_at": int(now + overlap_s)}
        entry = self._entry(actor, new.id, "rotate", self._record(old), after)
        if not await self._keys.rotate(new, until=now + overlap_s, entry=entry):
            raise _unknown(key_id)
        return new, text

    async def revoke(self, key_id: str, *, actor: str) -> None:
        """Revokes a key; every gateway refuses it within a second, also while the store is away."""
        before: Facts | None = None
        with contextlib.suppress(DependencyDown):
            found = await self._keys.find(key_id)
            before = None if found is None else self._record(found)
        after = None if before is None else {**before, "status": "revoked"}
        if not await self._revoke(key_id, self._entry(actor, key_id, "revoke", before, after)):
            raise _unknown(key_id)

    def _record(self, key: Key) -> Facts:
        return key_record(key, self._clock.now())

    def _entry(
        self, actor: str, key_id: str, action: str, before: Facts | None = None, after: Facts | None = None
    ) -> AuditEntry:
        at = self._clock.now()
        return new_entry(at=at, actor=actor, kind="key", name=key_id, action=action, before=before, after=after)

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
