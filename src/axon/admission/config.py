"""Admission's section of the settings."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionConfig:
    """May this turn enter?"""

    requests_per_minute: float = 600.0
    """Requests a key may send per minute, as a bucket of this size; 0 sets no limit."""
    tokens_per_minute: float = 0.0
    """Tokens a key may use per minute, prompt and answer, as a bucket of this size; 0 sets no limit."""
    backlog_per_key: int = 64
    """Turns of one key that may be queued or running; the next one gets 429."""
    backlog_total: int = 256
    """Turns that may be queued or running in all; the next one gets 503."""
