"""A panel of a dashboard as a value, and the expressions that panels are made of. Pure."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["timeseries", "stat"]
MODEL = 'model=~"$model"'
"""Selects the models that the reader of a dashboard has chosen."""
_OVER = "[$__rate_interval]"
"""Grafana's window for rates: a few scrapes, or one step of the picture if that is longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One expression of a panel."""

    expr: str
    legend: str = ""
    """What each series is called, with labels as ``{{model}}``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One picture: its title, what it says, and where its values come from."""

    title: str
    sentence: str
    unit: str
    """Grafana's: ``s``, ``reqps``, ``percentunit``, ``bytes``, ``short`` or ``ops``."""
    queries: tuple[Query, ...]
    kind: Kind = "timeseries"
    limit: float | None = None
    """The value that should not be passed, drawn as a line."""
    needs: str = ""
    """What a fleet must have for this panel to show anything, such as ``gpu``; empty for every fleet."""


def rate(counter: str, by: str = "", where: str = "") -> str:
    """Events a second, added up by the labels."""
    return f"{_sum(by)}(rate({counter}{_selected(where)}{_OVER}))"


def total(gauge: str, by: str = "", where: str = "") -> str:
    """The sum of what processes report."""
    return f"{_sum(by)}({gauge}{_selected(where)})"


def most(gauge: str, by: str = "", where: str = "") -> str:
    """The largest of what processes report of the same thing."""
    return f"max by ({by}) ({gauge}{_selected(where)})" if by else f"max({gauge}{_selected(where)})"


def quantile(share: float, histogram: str, by: str = "", where: str = "") -> str:
    """The value that this share of events is not above."""
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share:g}, sum by ({labels}) (rate({histogram}_bucket{_selected(where)}{_OVER})))"


def quantiles(histogram: str, where: str = "") -> tuple[Query, ...]:
    """The median, and what one in twenty and one in a hundred exceed."""
    return tuple(
        Query(expr=quantile(share, histogram, where=where), legend=name)
        for share, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))
    )


def ratio(part: str, whole: str) -> str:
    """A share of 0 to 1; without a series while there is nothing to share."""
    return f"{part} / ({whole} > 0)"


def share(counter: str, by: str, part: str, where: str = "") -> str:
    """The share of a counter's events whose labels are ``part``; 0 where there are others only."""
    all_of = rate(counter, by, where)
    chosen = rate(counter, by, ", ".join(filter(None, (part, where))))
    return f"({chosen} or 0 * {all_of}) / ({all_of} > 0)"


def _sum(by: str) -> str:
    return f"sum by ({by}) " if by else "sum"


def _selected(where: str) -> str:
    return f"{{{where}}}" if where else ""
