"""An API key: a public id to find it by and a secret that only its holder has. Pure; the store keeps a digest.

    axk_<8 characters id>_<43 characters secret><6 characters checksum>

The secret has 256 random bits, so a keyed hash is right and a slow one would only be a way to exhaust the server.
"""

import hashlib
import hmac
import re
import secrets
import zlib
from dataclasses import dataclass
from enum import StrEnum

_PATTERN = re.compile(r"axk_([0-9a-z]{8})_([0-9A-Za-z_-]{43})([0-9a-z]{6})")
_ID_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"


class Scope(StrEnum):
    """What a key may do."""

    INFERENCE = "inference"
    """Ask models, and all that belongs to an answer."""
    READ = "read"
    """Read what its tenant has: models, answers, conversations, usage."""
    ADMIN = "admin"
    """Tenants, plans, keys and usage of everybody."""


HOLDER = frozenset({Scope.INFERENCE, Scope.READ})
"""What a key may do unless it is made otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What is stored of a key."""

    id: str
    tenant: str
    digest: bytes
    name: str = ""
    scopes: frozenset[Scope] = HOLDER
    created_at: float
    expires_at: float | None = None
    revoked_at: float | None = None
    last_used_at: float | None = None
    """To the minute."""
    previous: str = ""
    """The key it was made from by rotation."""

    def valid(self, now: float) -> bool:
        return self.state(now) == "valid"

    def state(self, now: float) -> str:
        """For people: valid, expired or revoked."""
        if self.revoked_at is not None:
            return "revoked"
        return "valid" if self.expires_at is None or now < self.expires_at else "expired"


@dataclass(frozen=True, slots=True)
class KeyText:
    """A key as its holder sends it, taken apart."""

    id: str
    secret: str

    def __repr__(self) -> str:
        return f"KeyText(id={self.id!r})"


def _base36(number: int, width: int) -> str:
    digits = ""
    for _ in range(width):
        number, digit = divmod(number, 36)
        digits = _ID_ALPHABET[digit] + digits
    return digits


def _checksum(body: str) -> str:
    return _base36(zlib.crc32(body.encode()), 6)


def new_key_text() -> tuple[KeyText, str]:
    """A fresh key, and its text to show once."""
    key = KeyText("".join(secrets.choice(_ID_ALPHABET) for _ in range(8)), secrets.token_urlsafe(32))
    body = f"axk_{key.id}_{key.secret}"
    return key, body + _checksum(body)


def parse_key(text: str) -> KeyText | None:
    """The key in a text; None when it is none of ours or was mistyped."""
    match = _PATTERN.fullmatch(text)
    if match is None or match[3] != _checksum(text[:-6]):
        return None
    return KeyText(match[1], match[2])


def digest(pepper: bytes, secret: str) -> bytes:
    """What the store keeps of a secret."""
    return hmac.new(pepper, secret.encode(), hashlib.sha256).digest()


def matches(key: Key, pepper: bytes, secret: str) -> bool:
    """Whether a secret is the key's, in constant time."""
    return hmac.compare_digest(key.digest, digest(pepper, secret))
