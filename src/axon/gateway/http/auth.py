"""Authentication: finds the tenant, scopes and terms of a request's API key. Knows no route."""

import asyncio
import base64
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from axon.domain.tenants.access import Access
from axon.domain.tenants.key import HOLDER, Scope, matches, parse_key
from axon.domain.tenants.tenant import Terms
from axon.errors import DependencyDown, Forbidden, Unauthenticated
from axon.gateway.http.guess_limit import GuessLimit
from axon.ports.store import KeyLookup
from axon.runtime.clock import Clock

T = TypeVar("T")
_CACHE_S = 1.0
"""The store's answer about a key is used for this long; so a revoked key is refused after at most this long."""
_CACHE_SIZE = 10_000
"""Number of entries in each of the two LRU caches: known keys and unknown ids."""
_REVOCATION_TIMEOUT_S = 0.5
"""A request waits at most this long for ``live`` to say whether its key is revoked."""
_SUSPENDED = "tenant_suspended"
_MISSING = (
    "You didn't provide an API key. Provide it in an Authorization header using Bearer auth "
    "(Authorization: Bearer YOUR_KEY)."
)
_LOGIN = "Log in with any user name and your API key as the password, or send it in an Authorization header."
"""The hint on pages that a person opens in a browser, which asks for a login (HTTP Basic)."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The caller of a request: its key, tenant and scopes, and the terms that hold for it."""

    key_id: str
    tenant: str
    scopes: frozenset[Scope] = HOLDER
    terms: Terms = field(default_factory=Terms)
    user: str = ""
    """Who signed in by name (OpenID Connect) and acts with the key; empty for whoever has the key itself."""


class Authenticator:
    """Looks keys up in the store, behind an LRU cache of one second, so that a revoked key is refused within a second.

    While the store is down, a key that it confirmed before stays valid unless ``live`` has it as revoked; for any other
    key ``DependencyDown`` is raised.
    """

    def __init__(
        self,
        keys: KeyLookup,
        pepper: bytes,
        clock: Clock,
        *,
        defaults: Terms | None = None,
        revoked: Callable[[str], Awaitable[bool]] | None = None,
        guesses: GuessLimit | None = None,
        used: Callable[[str], None] | None = None,
    ) -> None:
        self._keys, self._pepper, self._clock = keys, pepper, clock
        self._defaults = defaults or Terms()
        self._revoked, self._guesses, self._used = revoked, guesses, used
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._unknown: OrderedDict[str, float] = OrderedDict()
        """A cache of its own for ids that do not exist, so that made-up ids evict no known key."""
        self._lookups: dict[str, asyncio.Future[_Known | None]] = {}
        """The running lookup of each key: requests with the same key share one (single flight)."""

    async def identify(self, authorization: list[bytes], *, basic: bool = False, address: str = "") -> Identity:
        """Returns the caller that the Authorization header identifies.

        Raises ``Unauthenticated`` for a key that is wrong, revoked or expired, ``Forbidden`` if its tenant is suspended
        and ``LimitReached`` if its address has sent too many wrong keys. ``basic`` allows HTTP Basic too.
        """
        return await self.identify_text(_key_text(authorization, basic=basic), basic=basic, address=address)

    async def identify_text(self, text: str, *, basic: bool = False, address: str = "") -> Identity:
        """Returns the caller whose key this text is; raises as ``identify`` does."""
        parsed = parse_key(text)
        known = await self._find(parsed.id, address) if parsed else None
        if parsed is None or known is None or not matches(known.access.key, self._pepper, parsed.secret):
            if parsed is not None and self._guesses is not None:  # a malformed key is a typing error, not a guess
                self._guesses.check(address)
                self._guesses.note(address)
            raise Unauthenticated(f"Incorrect API key provided: {_hint(text)}.{f' {_LOGIN}' if basic else ''}")
        return self._used_by(known)

    async def identify_id(self, key_id: str, *, address: str = "") -> Identity:
        """Returns the caller of a request that has proved by something else, as a web session's cookie, that it may
        act as the key; raises as ``identify`` does."""
        known = await self._find(key_id, address)
        if known is None:
            raise Unauthenticated("This API key was revoked or has expired.")
        return self._used_by(known)

    def _used_by(self, known: "_Known") -> Identity:
        self._check(known)
        if self._used is not None:
            self._used(known.access.key.id)
        return known.identity

    def _check(self, known: "_Known") -> None:
        """Raises if the key is revoked or expired, or its tenant is suspended."""
        if known.revoked or not known.access.key.valid(self._clock.now()):
            raise Unauthenticated("This API key was revoked or has expired.")
        if known.access.tenant.suspended_at is not None:
            raise Forbidden("This API key's tenant is suspended; ask the server's operator.", code=_SUSPENDED)

    async def _find(self, key_id: str, address: str) -> "_Known | None":
        """Returns what is known of a key, from the cache or by one shared lookup; None if there is no such key."""
        now = self._clock.monotonic()
        known = self._known.get(key_id)
        if known is not None and known.until > now:
            return known
        if known is None and self._guesses is not None:
            self._guesses.check(address)
        if known is None and self._unknown.get(key_id, 0.0) > now:
            return None
        lookup = self._lookups.get(key_id)
        if lookup is None:
            lookup = self._lookups[key_id] = asyncio.ensure_future(self._look_up(key_id, known))
            lookup.add_done_callback(lambda done: self._forget_lookup(key_id, done))
        return await asyncio.shield(lookup)  # a client that disconnects must not cancel it for the others

    def _forget_lookup(self, key_id: str, done: "asyncio.Future[_Known | None]") -> None:
        del self._lookups[key_id]
        if not done.cancelled():
            done.exception()  # marks the exception as retrieved, in case no client is left to raise it

    async def _look_up(self, key_id: str, known: "_Known | None") -> "_Known | None":
        """Asks the store for a key and ``live`` for its revocation, and caches the result.

        ``known`` is the expired entry of the cache; it is used again while the store is down.
        """
        now = self._clock.monotonic()
        try:
            access = await self._keys.access(key_id)
        except DependencyDown:
            if known is None:
                raise
            access, now = known.access, self._clock.monotonic()  # the store is asked again a second from now
        if access is None:
            self._known.pop(key_id, None)
            _remember(self._unknown, key_id, now + _CACHE_S)
            return None
        revoked = (known is not None and known.revoked) or await self._is_revoked(key_id)  # never undone
        who = Identity(access.key.id, access.tenant.id, access.key.scopes, access.terms(self._defaults))
        _remember(self._known, key_id, _Known(now + _CACHE_S, access, who, revoked))
        return self._known[key_id]

    async def _is_revoked(self, key_id: str) -> bool:
        if self._revoked is None:
            return False
        try:
            async with asyncio.timeout(_REVOCATION_TIMEOUT_S):
                return await self._revoked(key_id)
        except (DependencyDown, TimeoutError):
            return False  # the store's record of the key decides alone


@dataclass(frozen=True, slots=True)
class _Known:
    """A cache entry: the store's answer about a key."""

    until: float
    """The monotonic time in seconds at which the entry expires."""
    access: Access
    identity: Identity
    revoked: bool


def _remember(cache: OrderedDict[str, T], key_id: str, value: T) -> None:
    """Adds an entry to an LRU cache and evicts the oldest one when it is full."""
    cache[key_id] = value
    cache.move_to_end(key_id)
    if len(cache) > _CACHE_SIZE:
        cache.popitem(last=False)


def _key_text(headers: Iterable[bytes], *, basic: bool) -> str:
    """Returns the key in the Authorization headers' values; raises ``Unauthenticated`` if there is not exactly one."""
    values = list(headers)
    if len(values) > 1:
        raise Unauthenticated("The request has more than one Authorization header; send one.")
    missing = Unauthenticated(f"This page needs an API key. {_LOGIN}" if basic else _MISSING)
    if not values:
        raise missing
    scheme, _, value = values[0].decode("latin-1").strip().partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    password = _password(value) if basic and scheme.lower() == "basic" else None
    if password is None:
        raise missing
    return password


def _password(value: str) -> str | None:
    """Returns the password of HTTP Basic credentials, in which a browser sends a key; None if they are not Base64."""
    try:
        return base64.b64decode(value, validate=True).decode("latin-1").partition(":")[2]
    except ValueError:
        return None


def _hint(text: str) -> str:
    """Returns text by which the owner recognises a key: its public id, never a part of its secret."""
    return f"{text[:12]}…" if text.startswith("axk_") and len(text) > 12 else "not a key of this server"
