"""Signing in by OpenID Connect: an attempt from its start to the key it ends with. Knows no HTTP.

An attempt is kept in a cookie of the browser that began it, and everything about it is made from that cookie and a
secret of the server: nothing is stored until somebody comes back, so that nobody can fill the server with attempts.

    cookie -> state (comes back in the address), nonce (comes back in the token), verifier (PKCE, proves the exchange)
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from axon.errors import Forbidden, Unauthenticated
from axon.ports.issuer import Issuer
from axon.ports.live import Cache
from axon.runtime.clock import Clock
from axon.tenants.grants import Grant, granted, subject_of

ATTEMPT_S = 600.0
"""Seconds in which somebody must come back from the issuer's page."""
_MAX_CHARS = 200
_PAGES = frozenset({"", "console"})
"""Pages that one can be sent to after signing in."""


@dataclass(frozen=True, slots=True)
class Person:
    """Who came back from the issuer."""

    key_id: str
    """The key that they sign in as."""
    user: str
    page: str
    """The page to go on to."""


class OidcSignIn:
    """Begins attempts and ends them."""

    def __init__(
        self, issuer: Issuer, cache: Cache, clock: Clock, *, pepper: bytes, claim: str, grants: Sequence[Grant]
    ) -> None:
        self._issuer, self._cache, self._clock = issuer, cache, clock
        self._secret = hmac.new(pepper, b"axon oidc attempts", hashlib.sha256).digest()
        self._claim, self._grants = claim, grants

    async def begin(self, page: str) -> tuple[str, str]:
        """Returns the cookie of a new attempt, and the address of the issuer's page."""
        wanted = page if page in _PAGES else ""
        cookie = f"{secrets.token_urlsafe(32)}.{int(self._clock.now())}.{wanted}"
        digest = hashlib.sha256(self._made("verifier", cookie).encode()).digest()
        address = await self._issuer.address(
            state=self._made("state", cookie), nonce=self._made("nonce", cookie), challenge=_base64(digest)
        )
        return cookie, address

    async def end(self, cookie: str, *, state: str, code: str) -> Person:
        """Returns who came back. Raises ``Unauthenticated`` if the attempt is another browser's, too old or was ended
        before, or the issuer's word cannot be believed, and ``Forbidden`` if nothing was granted to this person."""
        page = self._page_of(cookie, state)
        used = f"oidc-attempt/{hashlib.sha256(cookie.encode()).hexdigest()}"
        if not await self._cache.put(used, b"1", ttl_s=2 * ATTEMPT_S, only_new=True):
            raise _wrong("this attempt has ended already")
        claims = await self._issuer.claims(
            code, verifier=self._made("verifier", cookie), nonce=self._made("nonce", cookie)
        )
        key_id = granted(claims, self._claim, self._grants)
        if key_id is None:
            problem = f"Nothing in gateway.oidc_keys fits this account's claim '{self._claim}'."
            raise Forbidden(problem, code="oidc_not_granted")
        return Person(key_id, subject_of(claims), page)

    def _page_of(self, cookie: str, state: str) -> str:
        """The page of an attempt of this browser; raises ``Unauthenticated`` where it is none, or too old."""
        parts = cookie.split(".")
        expected = self._made("state", cookie[:_MAX_CHARS])
        if not hmac.compare_digest(state.encode(), expected.encode()) or len(parts) != 3 or not parts[1].isdecimal():
            raise _wrong("it was not begun in this browser")
        if self._clock.now() - int(parts[1]) >= ATTEMPT_S:
            raise _wrong("it took too long")
        return parts[2] if parts[2] in _PAGES else ""

    def _made(self, what: str, cookie: str) -> str:
        return _base64(hmac.new(self._secret, f"{what} {cookie}".encode(), hashlib.sha256).digest())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _wrong(reason: str) -> Unauthenticated:
    return Unauthenticated(f"This attempt to sign in cannot go on: {reason}. Begin again.", code="oidc_attempt_refused")
