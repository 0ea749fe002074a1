"""A web session: a browser that is signed in as an API key. Its cookie's value is never kept, only a digest of it.

    cookie value -> SHA-256 -> id, under which the store keeps the session
    cookie value -> HMAC-SHA256 -> CSRF token, which the page reads and sends back in a header

The cookie's value has 256 random bits, so a plain hash of it cannot be turned around.
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass

_NUM_BYTES = 32
_VALUE_CHARS = 43
"""Length of a cookie's value: 256 bits in Base64 without padding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSession:
    """A web session as it is stored."""

    id: str
    """The digest of its cookie's value."""
    key_id: str
    """The key as which its requests are authenticated. It ends with the key."""
    user: str = ""
    """Who signed in, as an OpenID Connect issuer names them; empty for a session that was opened with a key."""
    created_at: float
    ends_at: float
    """Unix time at which it is over unless it is used before."""

    def valid(self, now: float) -> bool:
        return now < self.ends_at


def new_cookie_value() -> str:
    """Returns a fresh value of a cookie, of 256 random bits."""
    return secrets.token_urlsafe(_NUM_BYTES)


def session_id(value: str) -> str:
    """Returns the id of the session that a cookie's value belongs to."""
    return hashlib.sha256(value.encode()).hexdigest()


def csrf_token(value: str) -> str:
    """Returns the token that a page sends with each request that changes something, made from the cookie's value."""
    return hmac.new(value.encode(), b"axon csrf token", hashlib.sha256).hexdigest()


def is_cookie_value(text: str) -> bool:
    """Whether a text may be a cookie's value; others are refused without a look at the store."""
    return len(text) == _VALUE_CHARS and text.isascii() and text.replace("-", "").replace("_", "").isalnum()


def end_of(created_at: float, now: float, *, idle_s: float, lifetime_s: float) -> float:
    """Returns when a session that is used now will be over: after a time without use, and in the end in any case."""
    return min(now + idle_s, created_at + lifetime_s)
