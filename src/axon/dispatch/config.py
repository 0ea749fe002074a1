"""Dispatch's section of the settings."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchConfig:
    """Onto the queue."""

    num_lanes: int = 16
    """Lanes of a deployment; fixed once a queue has them."""
    accept_timeout_s: float = 2.0
    """Journal and queue must confirm within it, else the request is refused with 503."""
