"""The port of alerts: which are active now. Whoever decides that stands behind it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveAlert:
    """One alert that is active now, as the service that evaluates the rules reports it."""

    name: str
    state: str
    """``active``, or ``suppressed`` while it is silenced or inhibited, or ``unprocessed``."""
    starts_at: str
    """ISO 8601."""
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    silenced: bool
    inhibited: bool


class Alerts(Protocol):
    """Says which alerts are active."""

    async def active(self) -> Sequence[ActiveAlert]:
        """The active alerts, the oldest first; raises ``DependencyDown`` when they cannot be had."""
