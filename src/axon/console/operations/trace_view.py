"""Draws a trace and a table of the slowest turns as lines of text. Pure: knows no server and no terminal."""

from datetime import UTC, datetime

from axon.domain.tracing.drawn import Drawn, DrawnSpan
from axon.domain.tracing.slowest import Slowest

_LEAST_BAR, _MOST_BAR = 10, 80
_FULL, _PARTS = "█", "▏▎▍▌▋▊▉"


def trace_lines(trace: Drawn, width: int) -> list[str]:
    """The trace as a waterfall: a line for each span, its bar where its time was."""
    names = [_name(span) for span in trace.spans]
    notes = [_note(span) for span in trace.spans]
    label = max(map(len, names))
    bar = max(_LEAST_BAR, min(_MOST_BAR, width - label - max(map(len, notes)) - 14))
    whole_s = max(trace.seconds, *(span.start_s + span.seconds for span in trace.spans), 1e-9)
    lines = [*_head(trace), ""]
    for span, name, note in zip(trace.spans, names, notes, strict=True):
        drawn = bar_text(span.start_s / whole_s, span.seconds / whole_s, bar)
        lines.append(f"{name:{label}}  {drawn}  {_seconds(span.seconds):>8}{note}".rstrip())
    return lines


def slowest_lines(found: Slowest) -> list[str]:
    """What the slowest of a hundred turns are made of, as sentences above the tables."""
    if not found.num_turns:
        return ["No turn has ended in this time."]
    return [
        f"{found.num_turns} turns of the last {_seconds(found.since_s).strip()}: "
        f"half took at most {_seconds(found.p50_s).strip()}, the slowest of a hundred {_seconds(found.p99_s).strip()}."
    ]


def step_rows(found: Slowest) -> list[tuple[str, ...]]:
    """A row for each step: its share of the slowest, drawn too, its seconds there and its median in all."""
    return [
        (
            step.name,
            f"{step.share:6.1%}",
            _FULL * round(20 * step.share),
            _seconds(step.tail_s),
            _seconds(step.median_s),
        )
        for step in found.steps
    ]


def turn_rows(found: Slowest) -> list[tuple[str, ...]]:
    """A row for each of the slowest turns."""
    return [
        (
            turn.id,
            _seconds(turn.seconds),
            f"{turn.longest} {_seconds(turn.longest_s).strip()}",
            turn.state,
            str(turn.attempts),
            turn.model,
            turn.tenant,
            turn.request or "-",
        )
        for turn in found.turns
    ]


def bar_text(start: float, length: float, width: int) -> str:
    """A bar of ``width`` characters that is filled from ``start`` for ``length``, both fractions of it. What has any
    length is seen."""
    eighths = round(start * width * 8)
    begin, end = eighths // 8, min(width * 8, round((start + length) * width * 8))
    filled = end - begin * 8
    text = _FULL * (filled // 8) + (_PARTS[filled % 8 - 1] if filled % 8 else "")
    begin = min(begin, width - 1)
    return (" " * begin + (text or _PARTS[0]))[:width].ljust(width)


def _head(trace: Drawn) -> list[str]:
    began = datetime.fromtimestamp(trace.began_at, UTC).strftime("%Y-%m-%d %H:%M:%S")
    tries = f", {trace.attempts} attempts" if trace.attempts > 1 else ""
    if restarts := trace.ledger.restarts if trace.ledger else 0:
        tries += f", the server was restarted {'once' if restarts == 1 else f'{restarts} times'}"
    inside = [
        f"{_seconds(seconds).strip()} {what}"
        for seconds, what in ((trace.waited_s, "out of the engine's batches"), (trace.paced_s, "held back to its rate"))
        if seconds >= 0.0005
    ]
    return [
        f"{trace.id}  {trace.model} ({trace.version})  {trace.state}{tries}  {_seconds(trace.seconds).strip()}",
        f"tenant {trace.tenant}, request {trace.request or '-'}, trace {trace.trace_id or '-'}, {began} UTC",
        *([f"within these: {', '.join(inside)}"] if inside else []),
    ]


def _name(span: DrawnSpan) -> str:
    return "  " * span.depth + span.name


def _note(span: DrawnSpan) -> str:
    words = " ".join(filter(None, (span.worker, span.cause and f"({span.cause})", span.error)))
    return f"  {words}" if words else ""


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
