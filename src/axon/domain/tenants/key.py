"""An API key: a public id to find it by and a secret that only its holder has. The store keeps a digest.

    axk_<8 characters id>_<43 characters secret><6 characters checksum>

The secret has 256 random bits, so a keyed hash (HMAC-SHA256) is enough; a slow password hash would only let callers
exhaust the server's CPU.
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
    """A permission of a key."""

    INFERENCE = "inference"
    """Use models, and manage the tenant's own answers."""
    READ = "read"
    """Read the tenant's own objects: models, answers, conversations, usage."""
    VERSIONS = "versions"
    """Ask for one version of a model (``name@version``), where the key may ask models at all."""
    ADMIN = "admin"
    """Manage tenants, plans and keys, and read everybody's usage."""


HOLDER = frozenset({Scope.INFERENCE, Scope.READ})
"""Default scopes of a new key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key as it is stored."""

    id: str
    tenant: str
    digest: bytes
    name: str = ""
    scopes: frozenset[Scope] = HOLDER
    created_at: float
    expires_at: float | None = None
    revoked_at: float | None = None
    last_used_at: float | None = None
    """Unix time of the last use, accurate to the minute."""
    previous: str = ""
    """The key it was made from by rotation."""

    def valid(self, now: float) -> bool:
        return self.state(now) == "valid"

    def state(self, now: float) -> str:
        """The state's name: valid, expired or revoked."""
        if self.revoked_at is not None:
            return "revoked"
        return "valid" if self.expires_at is None or now < self.expires_at else "expired"


@dataclass(frozen=True, slots=True)
class KeyText:
    """The parts of a key as its holder sends it."""

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
    """Parses a key; None when the text is no key of Axon's or its checksum is wrong."""
    match = _PATTERN.fullmatch(text)
    if match is None or match[3] != _checksum(text[:-6]):
        return None
    return KeyText(match[1], match[2])


def digest(pepper: bytes, secret: str) -> bytes:
    """HMAC-SHA256 of a secret, which the store keeps in its place."""
    return hmac.new(pepper, secret.encode(), hashlib.sha256).digest()


def matches(key: Key, pepper: bytes, secret: str) -> bool:
    """Whether the secret belongs to the key; compares in constant time."""
    return hmac.compare_digest(key.digest, digest(pepper, secret))
