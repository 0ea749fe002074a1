"""Telemetry's section of the settings."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """Log lines."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least severe level that is written."""
    format: Literal["auto", "console", "json"] = "auto"
    """``auto``: for people on a terminal, JSON elsewhere."""
