"""Control's section of the settings."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlConfig:
    """Sweeping up."""

    sweep_s: float = 1.0
    """How often deadlines and retention are looked at."""
