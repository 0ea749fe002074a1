"""An alert and a recording rule as values, and how Prometheus writes them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from axon.monitoring.times import filled, scaled

Severity = Literal["page", "ticket"]
RUNBOOKS = "docs/runbooks"
"""Where the runbooks are, in the repository; whoever publishes them elsewhere says where."""

Rule = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """An expression that Prometheus keeps under a name of its own."""

    name: str
    expr: str
    labels: Mapping[str, str] = field(default_factory=dict)

    def rule(self, factor: float) -> Rule:
        labels = {"labels": dict(self.labels)} if self.labels else {}
        return {"record": self.name, "expr": filled(self.expr, factor), **labels}


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A condition that somebody should hear of."""

    name: str
    severity: Severity
    watch: str
    """The expression that is watched; it has series whether or not the alert fires."""
    expr: str
    """The condition, in which ``$watch`` stands for the expression."""
    hold: str = "0s"
    """How long the condition must hold before the alert fires."""
    summary: str
    """One line for the notification, with labels as ``{{ $labels.model }}``."""
    meaning: str
    """What it means for users."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels besides the severity, which tell apart several rules of the same alert."""

    @property
    def condition(self) -> str:
        return self.expr.replace("$watch", self.watch)

    def rule(self, factor: float, runbooks: str) -> Rule:
        return {
            "alert": self.name,
            "expr": filled(self.condition, factor),
            "for": scaled(self.hold, factor),
            "labels": {"severity": self.severity, **self.labels},
            "annotations": {
                "summary": self.summary,
                "description": self.meaning,
                "runbook_url": f"{runbooks.rstrip('/')}/{self.name}.md",
            },
        }
