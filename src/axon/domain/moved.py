"""A session's move to another version, as its answer tells it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Moved:
    """The versions before and after a move, and its reason."""

    old: str
    new: str
    reason: str
