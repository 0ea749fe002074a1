"""A census of what the store has over all tenants. Values only."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """Numbers of things in the store."""

    active_sessions: int = 0
    """Sessions with a turn that waits or runs."""
    sessions: int = 0
    """Sessions with a turn since the time that was asked for, the active ones included."""
    batches: Mapping[str, int] = field(default_factory=dict)
    """Batches by state; those that have ended are counted together, as ``ended``."""
    files: Mapping[str, int] = field(default_factory=dict)
    """Files by purpose."""
