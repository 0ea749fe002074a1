"""Numbers, durations and sizes as short words. Functions of their arguments alone."""

import math

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
NOTHING = "-"
"""Stands for what is not known."""


def number(value: float | None) -> str:
    """A count or a rate in at most five characters: 0.3, 12, 4.1k, 31k, 2.5M."""
    if value is None or not math.isfinite(value):
        return NOTHING
    size, letters = abs(value), iter(" kMGTPE")
    letter = next(letters)
    while size >= 999.5:
        letter = next(letters, "")
        if not letter:
            return ">999E" if value > 0 else "<-999E"
        size /= 1000
    is_small = size < 9.95 and (letter != " " or size != int(size))
    digits = f"{size:.1f}" if is_small and size >= 0.05 else f"{size:.0f}"
    sign = "-" if value < 0 and digits != "0" else ""
    return f"{sign}{digits.removesuffix('.0')}{letter}".strip()


def duration(seconds: float | None) -> str:
    """A latency: 0.4 ms, 12 ms, 1.5 s, 80 s."""
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    if seconds < 0.9995:
        return f"{seconds * 1000:.1f} ms" if seconds < 0.00995 else f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"


def age(seconds: float) -> str:
    """A long time: 45 s, 12 min, 3 h 5 min, 4 d 2 h."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if minutes < 60:
        return f"{minutes} min"
    return f"{hours} h {minutes % 60} min" if hours < 24 else f"{days} d {hours % 24} h"


def percent(share: float | None) -> str:
    """A share of 1 as a percentage."""
    return NOTHING if share is None or not math.isfinite(share) else f"{share * 100:.0f}%"


def size(num_bytes: float) -> str:
    """An amount of memory: 512 MiB, 3.4 GiB."""
    amount = float(num_bytes)
    for unit in _SIZES[:-1]:
        if amount < 1023.5:
            return f"{amount:.1f} {unit}" if amount < 9.95 and unit != "B" else f"{amount:.0f} {unit}"
        amount /= 1024
    return f"{amount:.0f} {_SIZES[-1]}"


def counted(num: int, noun: str) -> str:
    """``1 worker``, ``2 workers``."""
    return f"{num} {noun}{'' if num == 1 else 's'}"
