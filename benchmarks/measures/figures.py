"""Numbers of several rounds to one figure each, and a table of them for people. Knows no measure."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

Figures = dict[str, float]


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def latencies_ms(seconds: Sequence[float]) -> Figures:
    return {"p50_ms": 1000 * percentile(seconds, 0.50), "p99_ms": 1000 * percentile(seconds, 0.99)}


def median(rounds: Sequence[Figures]) -> Figures:
    """Of each figure, the middle one of its rounds."""
    return {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}


def shown(value: float) -> str:
    """Three digits that matter."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.1e}"


def table(rows: Mapping[str, Figures]) -> str:
    """Markdown; a row for each measure, its figures in the order they were measured."""
    lines = ["| measure | figures |", "|---|---|"]
    for name, figures in rows.items():
        lines.append(f"| {name} | {' · '.join(f'{figure} {shown(value)}' for figure, value in figures.items())} |")
    return "\n".join(lines)


def rounded(rows: Mapping[str, Figures]) -> dict[str, dict[str, Any]]:
    """For the JSON line: four digits are more than a shared machine is good for."""
    return {name: {figure: float(f"{value:.4g}") for figure, value in row.items()} for name, row in rows.items()}
