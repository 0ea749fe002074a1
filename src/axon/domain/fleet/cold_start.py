"""A cold start: how long a version's worker took from nothing to ready. Knows no worker and no service."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdStart:
    """The last measured start of a worker of a version."""

    seconds: float
    """From the start of its process until it could take jobs."""
    at: float
    """Unix time at which it was ready."""
