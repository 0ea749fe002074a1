"""Dispatch's section of the settings."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchConfig:
    """Dispatch of accepted turns."""

    num_lanes: int = 32
    """Lanes of each tier of a deployment: up to this many tenants share none. May be raised, workers first; never
    lowered while jobs wait in the last ones."""
    affinity: bool = True
    """Whether a follow-up turn goes to the worker that holds its conversation's blocks, while that one has room."""
    affinity_s: float = 600.0
    """Seconds after a turn's end in which its worker is assumed to hold its blocks; with ``engine.kv_folder``, the time
    for which conversations are to come back."""
    accept_timeout_s: float = 2.0
    """Seconds within which journal and queue must confirm; otherwise the request is refused with 503."""
