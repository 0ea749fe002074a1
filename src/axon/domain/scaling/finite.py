"""Numbers from elsewhere, made fit to compute with: none that is missing, negative, infinite or NaN gets further."""

from math import isfinite

MOST = 1e12
"""Largest amount that is computed with: more tokens, seconds or replicas than any fleet has."""


def amount(value: float | None, default: float = 0.0) -> float:
    """The value as an amount from 0 to ``MOST``; ``default`` for one that is missing or no number."""
    if value is None or value != value:
        return default
    return min(MOST, max(0.0, value))


def positive(value: float | None) -> float | None:
    """The value if it is finite and above 0; None otherwise, as for one that was not measured."""
    return min(MOST, value) if value is not None and isfinite(value) and value > 0 else None


def fraction(value: float | None) -> float | None:
    """The value held between 0 and 1; None for one that is missing or no number."""
    if value is None or value != value:
        return None
    return min(1.0, max(0.0, value))


def count(value: float | None) -> int:
    """The value as a count from 0 to a million; 0 for one that is missing or no number."""
    return int(min(1e6, amount(value)))
