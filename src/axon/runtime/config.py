"""The section of the settings on a process's life."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleConfig:
    """Starting and stopping."""

    drain_s: float = 30.0
    """How long running turns may go on after SIGTERM."""
