"""Lengths of time in PromQL, all multiplied by one factor. Pure.

``[5m]`` is a window, ``offset 10m`` a look back, and ``{60s}`` a number of seconds to compare with. With the factor
1/120 they become ``[2500ms]``, ``offset 5s`` and ``0.5``, so that a test can see an alert fire in seconds that fires
after minutes where it is used.
"""

import re

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LENGTH = r"(\d+)(ms|s|m|h|d)"
_WINDOW = re.compile(rf"\[{_LENGTH}\]")
_OFFSET = re.compile(rf"offset {_LENGTH}")
_SECONDS = re.compile(rf"\{{{_LENGTH}\}}")


def milliseconds(length: str) -> int:
    """``5m`` is 300,000."""
    found = re.fullmatch(_LENGTH, length)
    if found is None:
        raise ValueError(f"{length!r} is not a length of time such as 5m")
    return int(found[1]) * _UNITS_MS[found[2]]


def scaled(length: str, factor: float) -> str:
    """The length times the factor, in the largest unit that divides it; at least a millisecond if it is not zero."""
    whole = milliseconds(length)
    number = max(1, round(whole * factor)) if whole else 0
    unit = next((unit for unit in ("d", "h", "m", "s") if number and number % _UNITS_MS[unit] == 0), "ms")
    return f"{number // _UNITS_MS[unit]}{unit}" if number else "0s"


def filled(expression: str, factor: float) -> str:
    """An expression whose windows, offsets and seconds are multiplied by the factor."""
    expression = _WINDOW.sub(lambda found: f"[{scaled(found[1] + found[2], factor)}]", expression)
    expression = _OFFSET.sub(lambda found: f"offset {scaled(found[1] + found[2], factor)}", expression)
    return _SECONDS.sub(lambda found: f"{milliseconds(found[1] + found[2]) * factor / 1000:g}", expression)
