"""Draws a dashboard as one SVG: its panels in rows of two, each with lines over time. Knows no Prometheus."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import cycle

from benchmarks.measures.svg import Axis, Point, ticks

from axon.monitoring.dashboard import Dashboard
from axon.monitoring.panel import Panel

_COLORS = ("#1d6fd1", "#d9730d", "#2e8b57", "#8a4fbf", "#b8324f", "#5f6b7a", "#0e7c86", "#a3741a")
_INK, _FAINT, _GRID, _RED = "#1f2328", "#57606a", "#e4e8ec", "#cf222e"
_WIDTH, _GAP, _HEAD, _ROW = 1180, 16, 64, 30
_PANEL_WIDTH, _PANEL_HEIGHT = (_WIDTH - 3 * _GAP) // 2, 210
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 12, 34, 48
_MOST_NAMED, _MOST_DRAWN = 5, 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One series of a panel: its values over seconds since the picture's start."""

    name: str
    points: Sequence[Point]


def drawn(board: Dashboard, lines: Mapping[str, Sequence[Line]], length_s: float, note: str) -> str:
    """The picture; ``lines`` are by the titles of panels."""
    parts: list[str] = []
    y = float(_HEAD)
    for row in board.rows:
        parts.append(_text(_GAP, y + 19, row.title, size=14, weight=600))
        y += _ROW
        for index, panel in enumerate(row.panels):
            x = _GAP + (index % 2) * (_PANEL_WIDTH + _GAP)
            parts.append(f'<g transform="translate({x} {y:.0f})">{_panel(panel, lines[panel.title], length_s)}</g>')
            if index % 2 == 1 or index == len(row.panels) - 1:
                y += _PANEL_HEIGHT + _GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y:.0f}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="11"><title>{escape(board.title)}</title>'
        f'<rect width="{_WIDTH}" height="{y:.0f}" fill="#f6f8fa"/>'
    )
    title = [_text(_GAP, 28, board.title, size=18, weight=600), _text(_GAP, 48, note, color=_FAINT)]
    return "\n".join([head, *title, *parts, "</svg>"]) + "\n"


def _panel(panel: Panel, lines: Sequence[Line], length_s: float) -> str:
    box = f'<rect width="{_PANEL_WIDTH}" height="{_PANEL_HEIGHT}" rx="4" fill="#ffffff" stroke="{_GRID}"/>'
    lines = sorted(lines, key=lambda line: not line.points)
    parts = [box, _text(12, 20, panel.title, size=12, weight=600)]
    if not any(line.points for line in lines):
        reason = "nothing of it happened in this time" if lines else "no series"
        return "".join([*parts, _text(_PANEL_WIDTH / 2, _PANEL_HEIGHT / 2, reason, anchor="middle", color=_FAINT)])
    high = max(value for line in lines for _, value in line.points)
    y_ticks = ticks(high, about=4)
    x_axis = Axis(0.0, length_s, _LEFT, _PANEL_WIDTH - _RIGHT)
    y_axis = Axis(0.0, y_ticks[-1], _PANEL_HEIGHT - _BOTTOM, _TOP)
    parts += _grid(panel, y_axis, y_ticks)
    if panel.limit is not None and panel.limit <= y_ticks[-1]:
        y = y_axis.at(panel.limit)
        parts.append(
            f'<line x1="{_LEFT}" x2="{_PANEL_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{_RED}" '
            'stroke-dasharray="4 3"/>'
        )
    for x in (0.0, length_s / 2, length_s):
        parts.append(_text(x_axis.at(x), _PANEL_HEIGHT - _BOTTOM + 14, f"{x:.0f} s", anchor="middle", color=_FAINT))
    for color, line in zip(cycle(_COLORS), lines[:_MOST_DRAWN], strict=False):
        places = " ".join(f"{x_axis.at(x):.1f},{y_axis.at(y):.1f}" for x, y in line.points)
        parts.append(f'<polyline points="{places}" fill="none" stroke="{color}" stroke-width="1.6"/>')
    return "".join([*parts, *_legend(lines)])


def _grid(panel: Panel, axis: Axis, values: Sequence[float]) -> list[str]:
    parts = []
    for value in values:
        y = axis.at(value)
        parts.append(f'<line x1="{_LEFT}" x2="{_PANEL_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{_GRID}"/>')
        parts.append(_text(_LEFT - 6, y + 4, written(value, panel.unit), anchor="end", color=_FAINT))
    return parts


def _legend(lines: Sequence[Line]) -> list[str]:
    """The first names, and how many more there are."""
    parts, x = [], 12.0
    y = _PANEL_HEIGHT - 12
    for color, line in zip(_COLORS, lines[:_MOST_NAMED], strict=False):
        name = line.name if len(line.name) <= 26 else f"{line.name[:25]}…"
        if x + 24 + 6 * len(name) > _PANEL_WIDTH - 50:
            break
        parts.append(f'<rect x="{x:.0f}" y="{y - 8}" width="9" height="9" fill="{color}"/>')
        parts.append(_text(x + 13, y, name, color=_FAINT))
        x += 24 + 6 * len(name)
    more = len(lines) - len(parts) // 2
    return [*parts, _text(x, y, f"and {more} more", color=_FAINT)] if more else parts


def written(value: float, unit: str) -> str:
    """A value in its unit: 0.002 s is 2 ms, a share is in percent, bytes are in MB."""
    if unit == "percentunit":
        return f"{value * 100:g} %"
    if unit == "s":
        return f"{value * 1000:g} ms" if value < 1 else f"{value:g} s"
    if unit == "bytes":
        return f"{value / 1e6:g} MB" if value >= 1e5 else f"{value:g} B"
    return f"{value:,.10g}" if value < 1e6 else f"{value / 1e6:g} M"


def _text(
    x: float, y: float, text: str, *, size: int = 11, weight: int = 400, anchor: str = "start", color: str = _INK
) -> str:
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" '
        f'fill="{color}">{escape(text)}</text>'
    )
