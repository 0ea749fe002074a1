"""Control's section of the settings."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlConfig:
    """Sweeping up."""

    sweep_s: float = 1.0
    """How often deadlines, orphans and retention are looked at."""
    orphan_s: float = 30.0
    """A turn that nobody has run for so long, though its lane is empty, is put on the queue again."""
