"""The sessions' section of the settings."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsConfig:
    """Turns and how long they matter."""

    turn_timeout_s: float = 600.0
    """A turn that has not ended by then is ended as expired."""
    reader_grace_s: float = 30.0
    """A turn whose reader has been away for so long is cancelled."""
    retention_s: float = 3600.0
    """How long an ended turn's stream and text can be read again."""
    idle_ttl_s: float = 30 * 24 * 3600.0
    """A conversation or a chain of responses that nobody has gone on with for so long is forgotten."""
    busy_wait_s: float = 10.0
    """How long a turn waits for the one before it to end; 0 refuses it at once. Past it, 409."""
    history_cache_s: float = 3600.0
    """How long a session's history stays within quick reach after its last turn."""
