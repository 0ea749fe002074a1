"""New ids (sortable by time, unguessable, short enough to paste) and random seeds."""

import secrets

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u
_NUM_CHARS = 26
_MAX_CHARS = 64


def new_id(prefix: str, now: float) -> str:
    """``prefix`` + 10 characters of time in ms + 16 random ones (80 bits)."""
    number = (int(now * 1000) << 80) | secrets.randbits(80)
    return prefix + "".join(_ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5))


def is_made_id(text: str, prefix: str) -> bool:
    """Whether this is an id that ``new_id`` makes with the prefix, or such an id with more behind it."""
    rest = text.removeprefix(prefix) if text.startswith(prefix) else ""
    return _NUM_CHARS <= len(rest) <= _MAX_CHARS and all(char in _ALPHABET for char in rest[:_NUM_CHARS])


def new_seed() -> int:
    """A seed for a job whose client gave none."""
    return secrets.randbits(63)
