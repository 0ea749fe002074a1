"""New ids (sortable by time, unguessable, short enough to paste) and random seeds."""

import secrets

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u


def new_id(prefix: str, now: float) -> str:
    """``prefix`` + 10 characters of time in ms + 16 random ones (80 bits)."""
    number = (int(now * 1000) << 80) | secrets.randbits(80)
    return prefix + "".join(_ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5))


def new_seed() -> int:
    """A seed for a job whose client gave none."""
    return secrets.randbits(63)
