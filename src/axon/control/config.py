"""Control's section of the settings."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlConfig:
    """Sweeping up."""

    metrics_host: str = "127.0.0.1"
    """Address of the metrics and probes of ``axon control``."""
    metrics_port: int = 8003
    """Port of /metrics, /livez and /readyz of ``axon control``; 0 takes a free one."""
    lease_s: float = 1.5
    """A leader that has not renewed its lead for so long is replaced by one that stands by."""
    sweep_s: float = 1.0
    """How often deadlines, orphans and retention are looked at."""
    orphan_s: float = 30.0
    """A turn that nobody has run for so long, though its lane is empty, is put on the queue again."""
