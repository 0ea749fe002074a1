"""The settings' section on the start and stop of a process."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleConfig:
    """Starting and stopping."""

    notice_s: float = 0.0
    """Seconds after SIGTERM in which requests are still taken while /readyz already fails, so that load balancers
    notice first."""
    drain_s: float = 30.0
    """Seconds that running turns and streams may take to finish after that."""
