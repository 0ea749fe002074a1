"""What the panels of a dashboard show of a time: each expression asked of a live Prometheus, each series named."""

import math
import re
from collections.abc import Sequence

from axon.monitoring.panel import Panel, Query
from tests.monitoring.chosen import chosen
from tests.monitoring.drawing import Line
from tests.services.prometheus import PrometheusServer, Series


def lines_of(prometheus: PrometheusServer, panel: Panel, start: float, end: float, step_s: float) -> list[Line]:
    """The panel's lines. One whose values are no numbers, as a quantile of nothing, has no points."""
    found: list[Line] = []
    for query in panel.queries:
        for series in prometheus.query_range(chosen(query.expr, "10s"), start, end, step_s):
            points = [(at - start, value) for at, value in series.values if math.isfinite(value)]
            found.append(Line(name=named(query, series), points=points))
    return found


def named(query: Query, series: Series) -> str:
    """The legend with the series' labels in it; without a legend, its labels."""
    if not query.legend:
        return ", ".join(f"{name}={value}" for name, value in series.labels.items())
    return re.sub(r"\{\{(\w+)\}\}", lambda found: series.labels.get(found[1], ""), query.legend).strip()


def empty(prometheus: PrometheusServer, panels: Sequence[Panel], window: str = "1m") -> list[str]:
    """The expressions that have no series now."""
    expressions = [(panel.title, chosen(query.expr, window)) for panel in panels for query in panel.queries]
    return [f"{title}: {expression}" for title, expression in expressions if not prometheus.query(expression)]
