"""The spans of one request at a gateway, made of the times that the gateway noted. Pure.

    chat MODEL (the turn's) ─── gateway.request ─── job.publish ── stream.deliver

A request goes under the span of the turn that it asked for or came back to, so that every gateway that a turn's readers
came to is in one trace. A request without a turn, such as a refused one, goes under its caller's span.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from axon.domain.billing.ledger import Ledger
from axon.domain.tracing.context import TraceContext, step_span_id, turn_span_id
from axon.domain.tracing.kept import rebuilt_reason
from axon.domain.tracing.span import Attribute, Kind, Span

_SERVER_ERROR = 500


@dataclass(slots=True)
class TurnSteps:
    """What one request noted of one turn; Unix times in seconds, 0 for what did not happen."""

    turn_id: str
    context: TraceContext | None = None
    """The trace of the turn's job, once it has one."""
    is_new: bool = False
    """Whether this request opened the turn; otherwise it came back to it."""
    publishing: float = 0.0
    """Time at which its job went to journal and queue."""
    published: float = 0.0
    """Time at which both had confirmed it."""
    first_chunk: float = 0.0
    """Time at which the first of its chunks was read here."""
    terminal: str = ""
    ledger: Ledger | None = None


@dataclass(slots=True, kw_only=True)
class RequestSteps:
    """What a gateway noted of one request."""

    context: TraceContext
    """The trace context that its caller sent, or a new one."""
    span_id: str
    arrived: float
    is_called: bool = False
    """Whether the caller has sent a trace context."""
    turns: dict[str, TurnSteps] = field(default_factory=dict)

    def turn(self, turn_id: str) -> TurnSteps:
        """The steps of one of its turns."""
        found = self.turns.get(turn_id)
        if found is None:
            found = self.turns[turn_id] = TurnSteps(turn_id)
        return found


def reason_of(steps: RequestSteps, status: int, *, slow_s: float) -> str | None:
    """Why the request's spans are exported: empty if it was sampled; None if they are not exported."""
    if is_sampled(steps):
        return ""
    if not any(turn.context for turn in steps.turns.values()):  # it became no turn
        return "failed" if status >= _SERVER_ERROR else None
    reasons = (rebuilt_reason(turn.terminal, turn.ledger, slow_s=slow_s) for turn in steps.turns.values())
    return next(filter(None, reasons), None)


def is_sampled(steps: RequestSteps) -> bool:
    """Whether the request's trace is sampled: as that of the turn that it belongs to, else as its own."""
    return trace_of(steps).sampled


def trace_of(steps: RequestSteps) -> TraceContext:
    """The trace that the request belongs to: its turn's, or its own while it has none."""
    return next((turn.context for turn in steps.turns.values() if turn.context is not None), steps.context)


def request_spans(
    steps: RequestSteps, attributes: Mapping[str, Attribute], *, ended: float, error: str = "", reason: str = ""
) -> list[Span]:
    """The spans of a request that was answered, its own first. ``attributes`` are those of its own span."""
    trace, turns = trace_of(steps), list(steps.turns.values())
    rebuilt: dict[str, Attribute] = {"axon.rebuilt": True, "axon.rebuilt.reason": reason} if reason else {}
    firsts = [turn.first_chunk for turn in turns if turn.first_chunk]
    more: dict[str, Attribute] = {}
    if firsts:
        more["gen_ai.response.time_to_first_chunk"] = max(0.0, min(firsts) - steps.arrived)
    if any(turn.context is not None and not turn.is_new for turn in turns):
        more["axon.resumed"] = True
    own = Span(
        name="gateway.request",
        trace_id=trace.trace_id,
        span_id=steps.span_id,
        parent_id=_parent(steps),
        start=steps.arrived,
        end=max(ended, steps.arrived),
        attributes={**attributes, **more, **rebuilt},
        error=error,
        kind=Kind.SERVER,
    )
    return [own, *(span for turn in turns for span in _turn_steps(own, turn, ended, rebuilt))]


def _parent(steps: RequestSteps) -> str:
    """The span under which the request's goes: its turn's, else its caller's."""
    for turn in steps.turns.values():
        if turn.context is not None:
            return turn_span_id(turn.turn_id)
    return steps.context.parent_id if steps.is_called else ""


def _turn_steps(own: Span, turn: TurnSteps, ended: float, rebuilt: Mapping[str, Attribute]) -> Iterator[Span]:
    times = (
        ("job.publish", turn.publishing, turn.published, Kind.PRODUCER),
        ("stream.deliver", turn.first_chunk, ended, Kind.INTERNAL),
    )
    for name, start, end, kind in times:
        if start and end:
            yield Span(
                name=name,
                trace_id=own.trace_id,
                span_id=step_span_id(own.span_id, f"{turn.turn_id}/{name}"),
                parent_id=own.span_id,
                start=start,
                end=max(start, end),
                attributes={"gen_ai.response.id": turn.turn_id, **rebuilt},
                kind=kind,
            )
