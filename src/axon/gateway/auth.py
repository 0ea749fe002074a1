"""Key → tenant. Knows which routes are open and nothing of what the others do."""

import base64
import binascii
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from axon.domain.key import HOLDER, Key, Scope, matches, parse_key
from axon.domain.tenant import Terms
from axon.errors import DependencyDown, Unauthenticated
from axon.ports.store import KeyStore
from axon.runtime.clock import Clock

_CACHE_S = 1.0
_CACHE_SIZE = 10_000
_MISSING = (
    "You didn't provide an API key. Provide it in an Authorization header using Bearer auth "
    "(Authorization: Bearer YOUR_KEY)."
)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks, and on which terms."""

    key_id: str
    tenant: str
    scopes: frozenset[Scope] = HOLDER
    terms: Terms = field(default_factory=Terms)


class Authenticator:
    """Looks keys up in the store; an answer counts for a second, so a revoked key is out within one.

    While the store is away, a key that it once confirmed stays good, and nothing is said of any other.
    """

    def __init__(self, keys: KeyStore, pepper: bytes, clock: Clock, terms: Terms | None = None) -> None:
        """``terms`` hold for tenants of which nothing else is said."""
        self._keys, self._pepper, self._clock = keys, pepper, clock
        self._terms = terms or Terms()
        self._seen: OrderedDict[str, tuple[float, Key | None]] = OrderedDict()

    async def identify(self, authorization: list[bytes], *, basic: bool = False) -> Identity:
        """The holder of the key in the request's Authorization headers; raises ``Unauthenticated``."""
        text = _key_text(authorization, basic=basic)
        parsed = parse_key(text)
        key = await self._find(parsed.id) if parsed else None
        if parsed is None or key is None or not matches(key, self._pepper, parsed.secret):
            raise Unauthenticated(f"Incorrect API key provided: {_hint(text)}.")
        if not key.valid(self._clock.now()):
            raise Unauthenticated("This API key was revoked or has expired.")
        return Identity(key.id, key.tenant, terms=self._terms)

    async def _find(self, key_id: str) -> Key | None:
        now = self._clock.monotonic()
        seen = self._seen.get(key_id)
        if seen is not None and seen[0] > now:
            return seen[1]
        try:
            key = await self._keys.find(key_id)
        except DependencyDown:
            if seen is None or seen[1] is None:
                raise
            key, now = seen[1], self._clock.monotonic()  # a silent store is asked again no sooner than a second later
        self._seen[key_id] = (now + _CACHE_S, key)
        self._seen.move_to_end(key_id)
        if len(self._seen) > _CACHE_SIZE:
            self._seen.popitem(last=False)
        return key


def _key_text(headers: Iterable[bytes], *, basic: bool) -> str:
    values = list(headers)
    if len(values) != 1:
        raise Unauthenticated(_MISSING)
    scheme, _, value = values[0].decode("latin-1").strip().partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if basic and scheme.lower() == "basic":
        return _password(value)
    raise Unauthenticated(_MISSING)


def _password(value: str) -> str:
    """A browser's way to send a key: as the password of any user."""
    try:
        return base64.b64decode(value, validate=True).decode("latin-1").partition(":")[2]
    except binascii.Error:
        raise Unauthenticated(_MISSING) from None


def _hint(text: str) -> str:
    """Enough to recognise a key by, nothing to use it with: the public id of one of ours, else nothing of it."""
    return f"{text[:12]}…" if text.startswith("axk_") and len(text) > 12 else "not a key of this server"
