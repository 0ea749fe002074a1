"""Draws a profile as a flame graph: one SVG file that needs nothing else. No I/O.

A frame's width is the time in it and in what it called; the thread is at the bottom, what ran is at the top. A click
zooms, a click on the bottom goes back.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape

from axon.profiling.profile import CpuProfile
from axon.profiling.weights import Weight, rate_of, unit_of, weight_of

_WIDTH, _ROW, _MARGIN, _TOP, _BOTTOM = 1200, 17, 10, 48, 24
_LEAST_PX = 0.4
"""Narrower frames are not drawn."""
_CHAR_PX = 6.6
_MAX_FRAMES = 20_000
_ALL = "all"

_SCRIPT = """
var svg = document.documentElement, frames = Array.prototype.slice.call(document.querySelectorAll('g.f'));
function number(g, name) { return parseFloat(g.getAttribute('data-' + name)); }
function zoom(to) {
  var x0 = number(to, 'x'), w0 = number(to, 'w'), d0 = number(to, 'd');
  frames.forEach(function (g) {
    var x = number(g, 'x'), w = number(g, 'w'), inside = x >= x0 - 1e-6 && x + w <= x0 + w0 + 1e-6;
    var below = number(g, 'd') < d0 && x <= x0 + 1e-6 && x + w >= x0 + w0 - 1e-6;
    g.style.display = inside || below ? '' : 'none';
    var left = below ? 0 : (x - x0) / w0, part = below ? 1 : w / w0;
    var rect = g.querySelector('rect'), text = g.querySelector('text'), px = part * WIDTH;
    rect.setAttribute('x', MARGIN + left * WIDTH);
    rect.setAttribute('width', Math.max(px - 0.5, 0.2));
    rect.setAttribute('fill-opacity', below ? 0.5 : 1);
    text.setAttribute('x', MARGIN + left * WIDTH + 3);
    var name = g.getAttribute('data-n'), room = Math.floor((px - 6) / CHAR);
    text.textContent = room < 3 ? '' : name.length <= room ? name : name.slice(0, room - 2) + '..';
  });
}
frames.forEach(function (g) { g.addEventListener('click', function () { zoom(g); }); });
"""


@dataclass(slots=True)
class _Node:
    """A frame with everything that was called from it."""

    value: int = 0
    children: "dict[str, _Node]" = field(default_factory=dict)


def flame_graph(profile: CpuProfile, *, weight: Weight = Weight.CPU) -> str:
    """The profile as an SVG document."""
    root = _tree(profile, weight)
    placed = list(_placed(root))
    depth = max((each.depth for each in placed), default=0) + 1
    height = _TOP + depth * _ROW + _BOTTOM
    inner = _WIDTH - 2 * _MARGIN
    script = _SCRIPT.replace("WIDTH", str(inner)).replace("MARGIN", str(_MARGIN)).replace("CHAR", str(_CHAR_PX))
    unit = unit_of(weight, rate_of(profile))
    frames = "".join(_drawn(each, root.value, height, inner, unit) for each in placed)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="Menlo, Consolas, monospace" font-size="11">'
        f'<rect width="100%" height="100%" fill="#fdfaf3"/>'
        f'<text x="{_MARGIN}" y="20" font-size="15">{escape(_title(profile, weight))}</text>'
        f'<text x="{_MARGIN}" y="37" fill="#666">{escape(_subtitle(profile))}</text>'
        f"{frames}<script><![CDATA[{script}]]></script></svg>\n"
    )


def _title(profile: CpuProfile, weight: Weight) -> str:
    what = "Processor time" if weight is Weight.CPU else "Time, waiting included,"
    return f"{what} of {profile.process or 'the process'}"


def _subtitle(profile: CpuProfile) -> str:
    share = 100 * profile.cpu_s / profile.seconds if profile.seconds else 0.0
    return (
        f"{profile.seconds:.1f} s, {profile.rounds} looks at every thread; the process took {profile.cpu_s:.2f} s of "
        f"processor time ({share:.0f}% of one core), the sampler {profile.cost_s:.3f} s of it"
    )


def _tree(profile: CpuProfile, weight: Weight) -> _Node:
    root = _Node()
    for stack in profile.stacks:
        value = weight_of(stack, weight)
        if value <= 0:
            continue
        node = root
        node.value += value
        for index in stack.frames:
            node = node.children.setdefault(profile.frames[index], _Node())
            node.value += value
    return root


@dataclass(frozen=True, slots=True)
class _Placed:
    """A frame with its place: the unit of ``start`` and ``value`` is that of the weights."""

    name: str
    start: int
    value: int
    depth: int


def _placed(root: _Node) -> Iterator[_Placed]:
    """The frames that are wide enough to be seen, from the bottom up."""
    if root.value <= 0:
        return
    least = root.value * _LEAST_PX / _WIDTH
    waiting, num_placed = [(_ALL, root, 0, 0)], 0
    while waiting and num_placed < _MAX_FRAMES:
        name, node, start, depth = waiting.pop()
        yield _Placed(name, start, node.value, depth)
        num_placed += 1
        for child_name, child in sorted(node.children.items()):
            if child.value >= least:
                waiting.append((child_name, child, start, depth + 1))
            start += child.value


def _drawn(each: _Placed, total: int, height: int, inner: int, unit: float) -> str:
    part, left = each.value / total, each.start / total
    width, x = part * inner, _MARGIN + left * inner
    y = height - _BOTTOM - (each.depth + 1) * _ROW
    room = int((width - 6) / _CHAR_PX)
    shown = "" if room < 3 else each.name if len(each.name) <= room else each.name[: room - 2] + ".."
    hover = f"{each.name}: {each.value * unit:.3g} s, {100 * part:.1f}%"
    return (
        f'<g class="f" data-n="{escape(each.name)}" data-x="{left:.6f}" data-w="{part:.6f}" data-d="{each.depth}">'
        f"<title>{escape(hover)}</title>"
        f'<rect x="{x:.1f}" y="{y}" width="{max(width - 0.5, 0.2):.1f}" height="{_ROW - 1}" rx="1" '
        f'fill="{_colour(each)}"/>'
        f'<text x="{x + 3:.1f}" y="{y + 12}" pointer-events="none">{escape(shown)}</text></g>'
    )


def _colour(each: _Placed) -> str:
    """Axon's own code in orange, other Python in yellow, threads and what has no place in the code in grey blue."""
    shade = zlib.crc32(each.name.encode()) % 24
    if "(axon/" in each.name:
        return f"hsl({16 + shade % 16}, 88%, {62 + shade % 8}%)"
    return (
        f"hsl({46 + shade % 8}, 80%, {64 + shade % 8}%)" if ".py:" in each.name else f"hsl(205, 30%, {74 + shade % 8}%)"
    )
