"""The settings' section on the life of a process: its start, its stop, and the watch over its event loop."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleConfig:
    """Starting, stopping, and watching the event loop."""

    start_wait_s: float = 30.0
    """Seconds that a process waits at its start for services that do not answer; then it ends. It does not wait for a
    service that answers and refuses, as with a wrong password."""
    notice_s: float = 0.0
    """Seconds after SIGTERM in which requests are still taken while /readyz already fails, so that load balancers
    notice first."""
    drain_s: float = 30.0
    """Seconds that running turns and streams may take to finish after that."""
    lag_every_s: float = 0.5
    """Seconds between two measurements of the event loop's lag (``axon_event_loop_lag_seconds``), at most 5. A pause
    that is shorter than this may be missed; 0.005 took 2 % of a core of a Neoverse-N1."""
