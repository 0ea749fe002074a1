"""One picture of a server: a head, tables and a foot, in the lines of a terminal. Pure: it is told the time."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from rich.text import Text

from axon.console.top.figures import age, counted, duration, number, percent, size
from axon.console.top.grid import Grid, clean, cut, lines, shared_rows
from axon.console.top.grids import grid_of
from axon.console.top.rates import Latency, Rates
from axon.console.top.view import HELP, Section, View
from axon.domain.overview import Overview

_UNBOUNDED = 100_000
_TINY = 4
"""In fewer lines there is no foot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is known of a server."""

    url: str
    look: Overview | None = None
    rates: Rates = field(default_factory=Rates)
    silent_since: float | None = None
    """Unix time since which it has not answered; None while it does."""
    problem: str = ""
    """Why the server does not answer; empty while it does."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the picture."""

    text: str = ""
    style: str = ""


def picture(seen: Seen, view: View, *, now: float, width: int, height: int | None = None) -> list[Line]:
    """The lines, each at most ``width`` cells: ``height`` of them, or with None as many as there are."""
    head, foot = _head(seen, view, now), _foot(view)
    if height is not None and height < _TINY and view.typing is None:
        foot = []
    room = _UNBOUNDED if height is None else max(0, height - len(foot))
    if view.shows_help:
        body = [Line(), *(Line(f"  {keys:<12}{meaning}") for keys, meaning in HELP)]
    elif seen.look is None:
        body = [Line(), Line("Nothing has been seen yet.", "dim")]
    else:
        body = _tables(seen.look, seen.rates, view, width, room - len(head))
    shown = [*head, *body][:room]
    if height is not None:
        shown += [Line()] * (room - len(shown))
    return [
        Line(cut(line.text, width), line.style) for line in [*shown, *foot][: _UNBOUNDED if height is None else height]
    ]


def drawn(picture: list[Line]) -> Text:
    """The lines for a console, each on its own line."""
    return Text("\n", no_wrap=True, overflow="crop", end="").join(Text(line.text, line.style) for line in picture)


def _head(seen: Seen, view: View, now: float) -> list[Line]:
    look = seen.look
    about = f" · axon {look.gateway.version} · up {age(look.gateway.up_s)}" if look else ""
    state = "PAUSED · " if view.is_paused else ""  # first: a narrow screen cuts the end of a line
    title = f"axon top · {state}{seen.url}{about} · {_clock(now)} · every {view.interval_s:g} s"
    head = [Line(clean(title), "bold")]
    if seen.silent_since is not None:
        since = f"No answer since {_clock(seen.silent_since)} ({age(now - seen.silent_since)}): {seen.problem}"
        head.append(Line(clean(since), "bold red"))
    if look is not None:
        head += [_fleet(look), _work(look), _speed(seen.rates), _here(look, seen.rates)]
        head += [Line(clean(f"Not read: {problem}"), "yellow") for problem in look.problems[:3]]
    return head


def _fleet(look: Overview) -> Line:
    draining = sum(each.draining for each in look.workers)
    zones = sorted({each.zone for each in look.workers if each.zone})
    ready = sum(each.state == "ready" for each in look.models)
    parts = [
        counted(look.num_gateways, "gateway") + (" (this one drains)" if look.gateway.draining else ""),
        counted(look.num_workers, "worker") + (f" ({draining} draining)" if draining else ""),
        f"{counted(look.num_models, 'model')} ({ready} ready)",
        *([f"{counted(len(zones), 'zone')} ({', '.join(zones[:4])}{'…' if len(zones) > 4 else ''})"] if zones else []),
    ]
    if (control := look.control) is not None:
        problem = f": {control.problem}" if control.problem else ""
        parts.append(f"control {control.leader} {age(control.age_s)} ago{problem}")
    return Line(clean("Fleet   " + " · ".join(parts)))


def _work(look: Overview) -> Line:
    running, slots = sum(each.running for each in look.workers), sum(each.slots for each in look.workers)
    waiting, tokens = sum(each.requests for each in look.queues), sum(each.tokens for each in look.queues)
    used = [each.kv_use for each in look.workers if each.kv_use is not None]
    gpus = [gpu for each in look.workers for gpu in each.gpus]
    parts = [
        f"running {running}/{slots}",
        f"waiting {number(waiting)} ({number(tokens)} tokens)",
        f"KV {percent(max(used, default=None))}",
    ]
    if gpus:
        busy, memory = sum(each.utilization for each in gpus) / len(gpus), sum(each.memory_bytes for each in gpus)
        parts.append(f"{counted(len(gpus), 'GPU')} {percent(busy)} {size(memory)}")
    return Line("Work    " + " · ".join(parts))


def _speed(rates: Rates) -> Line:
    fleet = rates.fleet
    parts = [
        f"out {number(fleet.answer_per_s)} tokens/s",
        f"in {number(fleet.prompt_per_s)} tokens/s",
        f"TTFT {_pair(fleet.ttft)}",
        f"gap {_pair(fleet.gaps)}",
    ]
    return Line("Speed   " + " · ".join(parts))


def _here(look: Overview, rates: Rates) -> Line:
    """The gateway that answered."""
    here = rates.gateway
    sockets = f", {counted(look.gateway.sockets, 'socket')}" if look.gateway.sockets else ""
    parts = [
        counted(look.gateway.streams, "stream") + sockets,
        f"{number(here.requests_per_s)} requests/s",
        f"{number(here.rejected_per_s)} refused/s",
        f"{number(here.failed_per_s)} failed/s",
        f"TTFT {_pair(here.ttft)}",
        f"gap {_pair(here.gaps)}",
    ]
    return Line("Here    " + " · ".join(parts))


def _pair(latency: Latency) -> str:
    return f"{duration(latency.p50_s)} / {duration(latency.p99_s)}"


def _tables(look: Overview, rates: Rates, view: View, width: int, room: int) -> list[Line]:
    sections = [view.section] if view.section else list(Section)
    grids = [grid_of(each, look, rates, view) for each in sections]
    # A table takes an empty line and its titles beside its rows, or one line that says that there are none.
    given = shared_rows([len(grid.rows) or 1 for grid in grids], room - 2 * len(grids))
    return [line for grid, num in zip(grids, given, strict=True) for line in _table(grid, width, num)]


def _table(grid: Grid, width: int, num: int) -> list[Line]:
    """The table in ``num`` lines, beside an empty one and its titles."""
    if num <= 0:
        return []
    if not grid.rows:
        return [Line(), Line(grid.title, "bold cyan"), Line(grid.empty, "dim")]
    title, *rows = lines(grid, width)
    num_shown = num if grid.num_rows <= num else num - 1
    shown = [Line(row, "yellow" if index in grid.marked else "") for index, row in enumerate(rows[:num_shown])]
    if num_left := grid.num_rows - len(shown):
        shown.append(Line(f"and {num_left} more", "dim"))
    return [Line(), Line(title, "bold cyan"), *shown]


def _foot(view: View) -> list[Line]:
    if view.typing is not None:
        return [Line(clean(f"{view.typing}: {view.typed}▏  (enter: filter, esc: leave it)"), "reverse")]
    filters = [f"{name} {value!r}" for name in ("text", "model", "tenant") if (value := getattr(view, name))]
    chosen = f"sorted by {view.sort}{' reversed' if view.is_reversed else ''}"
    if filters:
        chosen += " · only " + ", ".join(filters)
    return [Line(clean(f"{chosen} · ? help · q leave"), "dim")]


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%H:%M:%S")
