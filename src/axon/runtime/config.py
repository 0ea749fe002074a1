"""The section of the settings on a process's life."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleConfig:
    """Starting and stopping."""

    notice_s: float = 0.0
    """How long requests are still taken after SIGTERM, while /readyz already says no: a balancer's time to hear it."""
    drain_s: float = 30.0
    """How long running turns and streams may go on after that."""
