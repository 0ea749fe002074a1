"""A service level objective, and the alerts on the rate at which its error budget is spent (burn rate). Pure.

A burn rate of 1 spends the whole budget of 30 days in 30 days. Each alert looks at two windows: the long one says that
it matters, the short one that it still goes on. The three pairs are those of Google's SRE workbook, chapter 5.
"""

from dataclasses import dataclass

from axon.monitoring.alert import Alert, Recording, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Burn:
    """A pair of windows and the burn rate from which it alerts."""

    name: str
    rate: float
    long: str
    short: str
    hold: str
    severity: Severity
    spent: str
    """The share of the budget that is gone when the long window is full of such errors."""


BURNS = (
    Burn(name="fast", rate=14.4, long="1h", short="5m", hold="2m", severity="page", spent="2 % in an hour"),
    Burn(name="medium", rate=6, long="6h", short="30m", hold="15m", severity="page", spent="5 % in six hours"),
    Burn(name="slow", rate=1, long="3d", short="6h", hold="1h", severity="ticket", spent="10 % in three days"),
)
WINDOWS = ("5m", "30m", "1h", "6h", "3d")


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A share of good events that is promised, and how the bad ones are counted."""

    slo: str
    """Its name as a label."""
    alert: str
    target: float
    """The promised share of good events, 0 to 1."""
    bad: str
    """Share of bad events over ``[$window]``."""
    by: tuple[str, ...] = ()
    """Labels that the share is told apart by."""
    miss: str
    """What the bad events are, behind "5 % of the …"."""
    meaning: str
    """What users notice when it is missed."""

    @property
    def budget(self) -> float:
        """The share of events that may be bad."""
        return round(1 - self.target, 9)

    @property
    def recorded(self) -> str:
        """The recorded share over a window, whose name comes behind it."""
        return f"axon:{self.slo}_errors:ratio_rate"

    def recordings(self) -> list[Recording]:
        """The shares of bad events, one for each window; a window's name stays what it is at full length."""
        return [
            Recording(name=f"{self.recorded}{window}", expr=self.bad.replace("$window", window)) for window in WINDOWS
        ]

    def alerts(self) -> list[Alert]:
        return [self._alert(burn) for burn in BURNS]

    def _alert(self, burn: Burn) -> Alert:
        most = f"{burn.rate * self.budget:.6g}"
        on = f"on ({', '.join(self.by)}) " if self.by else ""
        where = "".join(f" ({label} {{{{ $labels.{label} }}}})" for label in self.by)
        return Alert(
            name=self.alert,
            severity=burn.severity,
            watch=f"{self.recorded}{burn.long}",
            expr=f"$watch > {most} and {on}{self.recorded}{burn.short} > {most}",
            hold=burn.hold,
            summary=f"{{{{ $value | humanizePercentage }}}} of the {self.miss}{where}: a {burn.name} burn.",
            meaning=f"{self.meaning} At this rate the error budget of 30 days loses {burn.spent}.",
            labels={"burn": burn.name, "slo": self.slo},
        )
