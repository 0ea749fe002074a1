"""Key → tenant. Knows which routes are open and nothing of what the others do."""

import asyncio
import base64
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from axon.domain.access import Access
from axon.domain.key import HOLDER, Scope, matches, parse_key
from axon.domain.tenant import Terms
from axon.errors import DependencyDown, Forbidden, Unauthenticated
from axon.gateway.http.guess_limit import GuessLimit
from axon.ports.store import KeyLookup
from axon.runtime.clock import Clock

T = TypeVar("T")
_CACHE_S = 1.0
_CACHE_SIZE = 10_000
_LIVE_S = 0.5
"""As long as a request waits to hear of a revocation."""
_SUSPENDED = "tenant_suspended"
_MISSING = (
    "You didn't provide an API key. Provide it in an Authorization header using Bearer auth "
    "(Authorization: Bearer YOUR_KEY)."
)
_LOGIN = "Log in with any user name and your API key as the password, or send it in an Authorization header."
"""For the pages that a person opens in a browser, which asks for a login (HTTP Basic)."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks, and on which terms."""

    key_id: str
    tenant: str
    scopes: frozenset[Scope] = HOLDER
    terms: Terms = field(default_factory=Terms)


class Authenticator:
    """Looks keys up in the store; an answer counts for a second, so a revoked key is out within one.

    While the store is away, a key that it once confirmed stays good unless ``live`` knows it for revoked, and nothing
    is said of any other.
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
        """Apart, so that whoever makes ids up drives out nobody who is known."""
        self._asking: dict[str, asyncio.Future[_Known | None]] = {}
        """One look a key, however many wait for it."""

    async def identify(self, authorization: list[bytes], *, basic: bool = False, address: str = "") -> Identity:
        """The holder of the key in the request's Authorization headers; raises where it opens nothing."""
        text = _key_text(authorization, basic=basic)
        parsed = parse_key(text)
        known = await self._find(parsed.id, address) if parsed else None
        if parsed is None or known is None or not matches(known.access.key, self._pepper, parsed.secret):
            if parsed is not None and self._guesses is not None:  # a typing error is no guess
                self._guesses.check(address)
                self._guesses.note(address)
            raise Unauthenticated(f"Incorrect API key provided: {_hint(text)}.{f' {_LOGIN}' if basic else ''}")
        self._check(known)
        if self._used is not None:
            self._used(parsed.id)
        return known.identity

    def _check(self, known: "_Known") -> None:
        if known.revoked or not known.access.key.valid(self._clock.now()):
            raise Unauthenticated("This API key was revoked or has expired.")
        if known.access.tenant.suspended_at is not None:
            raise Forbidden("This API key's tenant is suspended; ask whoever runs this server.", code=_SUSPENDED)

    async def _find(self, key_id: str, address: str) -> "_Known | None":
        now = self._clock.monotonic()
        known = self._known.get(key_id)
        if known is not None and known.until > now:
            return known
        if known is None and self._guesses is not None:
            self._guesses.check(address)
        if known is None and self._unknown.get(key_id, 0.0) > now:
            return None
        asking = self._asking.get(key_id)
        if asking is None:
            asking = self._asking[key_id] = asyncio.ensure_future(self._ask(key_id, known))
            asking.add_done_callback(lambda done: self._answered(key_id, done))
        return await asyncio.shield(asking)  # one who leaves takes the answer from nobody else

    def _answered(self, key_id: str, done: "asyncio.Future[_Known | None]") -> None:
        del self._asking[key_id]
        if not done.cancelled():
            done.exception()  # seen, should everybody have left meanwhile

    async def _ask(self, key_id: str, known: "_Known | None") -> "_Known | None":
        now = self._clock.monotonic()
        try:
            access = await self._keys.access(key_id)
        except DependencyDown:
            if known is None:
                raise
            access, now = known.access, self._clock.monotonic()  # a silent store is asked again a second later
        if access is None:
            self._known.pop(key_id, None)
            _remember(self._unknown, key_id, now + _CACHE_S)
            return None
        revoked = (known is not None and known.revoked) or await self._is_revoked(key_id)  # for good
        who = Identity(access.key.id, access.tenant.id, access.key.scopes, access.terms(self._defaults))
        _remember(self._known, key_id, _Known(now + _CACHE_S, access, who, revoked))
        return self._known[key_id]

    async def _is_revoked(self, key_id: str) -> bool:
        if self._revoked is None:
            return False
        try:
            async with asyncio.timeout(_LIVE_S):
                return await self._revoked(key_id)
        except (DependencyDown, TimeoutError):
            return False  # then the store's word has to do


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a key, for a second."""

    until: float
    access: Access
    identity: Identity
    revoked: bool


def _remember(seen: OrderedDict[str, T], key_id: str, value: T) -> None:
    seen[key_id] = value
    seen.move_to_end(key_id)
    if len(seen) > _CACHE_SIZE:
        seen.popitem(last=False)


def _key_text(headers: Iterable[bytes], *, basic: bool) -> str:
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
    """A browser's way to send a key: as the password of any user. None for what is no Base64."""
    try:
        return base64.b64decode(value, validate=True).decode("latin-1").partition(":")[2]
    except ValueError:
        return None


def _hint(text: str) -> str:
    """Enough to recognise a key by, nothing to use it with: the public id of one of ours, else nothing of it."""
    return f"{text[:12]}…" if text.startswith("axk_") and len(text) > 12 else "not a key of this server"
