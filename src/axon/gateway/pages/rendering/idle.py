"""Finds the processes that have had no work for so long that they should end. Pure; knows no process."""

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")


def idle(free_since: Mapping[T, float], now: float, most_s: float) -> tuple[list[T], float | None]:
    """Returns those that have been free for ``most_s`` seconds or more, and the seconds until the next one will have
    been; None if there is no other."""
    due = [each for each, since in free_since.items() if now >= since + most_s]
    left_s = [since + most_s - now for since in free_since.values() if now < since + most_s]
    return due, min(left_s, default=None)
