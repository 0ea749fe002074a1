"""The sessions' section of the settings."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsConfig:
    """Turns and sessions: time limits and retention."""

    turn_timeout_s: float = 600.0
    """Seconds after which a turn that has not ended is ended as expired."""
    reader_grace_s: float = 30.0
    """Seconds without a reader after which a turn is cancelled."""
    retention_s: float = 3600.0
    """Seconds for which an ended turn's stream and text can be read again."""
    idle_ttl_s: float = 30 * 24 * 3600.0
    """Seconds without use after which a conversation or a chain of responses is erased."""
    busy_wait_s: float = 10.0
    """Seconds that a turn waits for the one before it to end, then it gets 409; 0 refuses it at once."""
    history_cache_s: float = 3600.0
    """Seconds that a session's history stays in the cache after its last turn."""
    pin_ttl_s: float = 24 * 3600.0
    """Seconds without a turn after which a session is pinned to its version no more: its next turn may be answered by
    another one, and says so."""
