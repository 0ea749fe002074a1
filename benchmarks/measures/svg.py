"""Small charts as SVG text: lines, dots and bars. Knows no measure and needs no library."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

Point = tuple[float, float]

_WIDTH, _HEIGHT = 720, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 24, 76, 56
_COLORS = ("#1d6fd1", "#d9730d", "#2e8b57", "#8a4fbf", "#b8324f", "#5f6b7a")
_INK, _FAINT, _GRID = "#1f2328", "#57606a", "#d8dee4"


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points under one name."""

    name: str
    points: Sequence[Point]
    dots: bool = False
    """Each point by itself instead of a line through them."""


@dataclass(frozen=True, slots=True)
class Axis:
    """From values to places on the page."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The place of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def ticks(high: float, about: int = 5) -> list[float]:
    """Round numbers from 0 to the first that is not below ``high``."""
    if high <= 0:
        return [0.0, 1.0]
    step = 10.0 ** math.floor(math.log10(high / about))
    step *= next(factor for factor in (1, 2, 5, 10) if high / (step * factor) <= about)
    return [step * index for index in range(math.ceil(high / step - 1e-9) + 1)]


def line_chart(
    title: str,
    *,
    x_label: str,
    y_label: str,
    series: Sequence[Series],
    shaded: tuple[float, float] | None = None,
) -> str:
    """Series over a common axis, both from 0; ``shaded`` marks a stretch of x."""
    x_ticks = ticks(max(x for each in series for x, _ in each.points), about=8)
    y_ticks = ticks(max(y for each in series for _, y in each.points))
    x_axis, y_axis = _axes(x_ticks[-1], y_ticks[-1])
    parts = []
    if shaded:
        start, end = x_axis.at(shaded[0]), x_axis.at(shaded[1])
        parts.append(
            f'<rect x="{start:.1f}" y="{_TOP}" width="{end - start:.1f}" height="{_plot_height()}" fill="#eef2f6"/>'
        )
    parts += [*_grid(y_axis, y_ticks), *(_label(x_axis.at(x), _HEIGHT - _BOTTOM + 18, _number(x)) for x in x_ticks)]
    for color, each in zip(_COLORS, series, strict=False):
        places = [(x_axis.at(x), y_axis.at(y)) for x, y in each.points]
        if each.dots:
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{color}"/>' for x, y in places]
        else:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2.2"/>')
    parts.append(_label((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 14, x_label))
    return _page(title, y_label, [each.name for each in series], parts)


def bar_chart(title: str, *, y_label: str, groups: Mapping[str, Mapping[str, float]]) -> str:
    """Bars side by side in each group, named by their color; a group may lack some."""
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    y_ticks = ticks(max(value for group in groups.values() for value in group.values()))
    _, y_axis = _axes(1.0, y_ticks[-1])
    parts = _grid(y_axis, y_ticks)
    room = (_WIDTH - _LEFT - _RIGHT) / len(groups)
    width = min(64.0, 0.8 * room / len(names))
    for index, (label, group) in enumerate(groups.items()):
        middle = _LEFT + (index + 0.5) * room
        parts.append(_label(middle, _HEIGHT - _BOTTOM + 18, label))
        for place, name in enumerate(names):
            if name not in group:
                continue
            x, y = middle + (place - len(names) / 2) * width, y_axis.at(group[name])
            height = _HEIGHT - _BOTTOM - y
            color = _COLORS[place % len(_COLORS)]
            parts.append(
                f'<rect x="{x + 1:.1f}" y="{y:.1f}" width="{width - 2:.1f}" height="{height:.1f}" fill="{color}"/>'
            )
            parts.append(_label(x + width / 2, y - 5, _number(group[name])))
    return _page(title, y_label, names, parts)


def _axes(x_high: float, y_high: float) -> tuple[Axis, Axis]:
    return Axis(0.0, x_high, _LEFT, _WIDTH - _RIGHT), Axis(0.0, y_high, _HEIGHT - _BOTTOM, _TOP)


def _plot_height() -> int:
    return _HEIGHT - _TOP - _BOTTOM


def _grid(axis: Axis, values: Sequence[float]) -> list[str]:
    parts = []
    for value in values:
        y = axis.at(value)
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{_GRID}"/>')
        parts.append(_label(_LEFT - 8, y + 4, _number(value), anchor="end"))
    return parts


def _page(title: str, y_label: str, names: Sequence[str], parts: Sequence[str]) -> str:
    legend, x = [], float(_LEFT)
    for index, name in enumerate(names):
        color = _COLORS[index % len(_COLORS)]
        legend.append(f'<rect x="{x:.0f}" y="48" width="11" height="11" fill="{color}"/>')
        legend.append(_label(x + 16, 58, name, anchor="start"))
        x += 34 + 6.6 * len(name)
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="12"><title>{escape(title)}</title>',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="28" fill="{_INK}" font-size="16" font-weight="600">{escape(title)}</text>',
        f'<text transform="translate(18 {_TOP + _plot_height() / 2:.0f}) rotate(-90)" text-anchor="middle" '
        f'fill="{_FAINT}">{escape(y_label)}</text>',
    ]
    return "\n".join([*head, *legend, *parts, "</svg>"]) + "\n"


def _label(x: float, y: float, text: str, *, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{_FAINT}">{escape(text)}</text>'


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:.3g}"
