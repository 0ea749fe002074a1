"""One turn's trace as it is shown without a backend: its spans in order, each with its depth and its seconds. Pure."""

import msgspec

from axon.domain.billing.ledger import Ledger
from axon.domain.tracing.context import TraceContext, read_context, turn_span_id
from axon.domain.tracing.span import Span
from axon.domain.tracing.turn_spans import leaves, model_of, times_of, turn_spans
from axon.domain.turn import Turn

_NO_TRACE = "0" * 32


class DrawnSpan(msgspec.Struct, frozen=True, kw_only=True):
    """One span; seconds count from the arrival of the turn's request."""

    name: str
    depth: int
    """0 for the turn itself."""
    start_s: float
    seconds: float
    worker: str = ""
    """The worker's name, or its incarnation where the name is not known."""
    cause: str = ""
    """Why an attempt followed the one before."""
    error: str = ""


class DrawnLedger(msgspec.Struct, frozen=True, kw_only=True):
    """The turn's ledger, as its client may see it; docs/ledger.md says what each figure means."""

    queued_tokens: int
    prefilled_tokens: int
    cached_tokens: int
    emitted_tokens: int
    replayed_tokens: int
    wasted_tokens: int
    billed_tokens: int
    queue_s: float
    prefill_s: float
    decode_s: float
    replay_s: float
    start_s: float = 0.0
    restarts: int = 0
    restart_s: float = 0.0


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn's trace."""

    id: str
    """The turn's id."""
    request: str
    trace_id: str
    """Empty for a request that was not traced."""
    tenant: str
    model: str
    version: str
    state: str
    """``opened`` while it runs: then its last spans go up to now."""
    began_at: float
    seconds: float
    attempts: int
    waited_s: float
    """Seconds within the others in which the engine's batches did not include it."""
    paced_s: float
    """Seconds within the others in which it was held back to its tenant's rate."""
    spans: tuple[DrawnSpan, ...]
    ledger: DrawnLedger | None = None
    """None for a turn that no worker has run."""


def drawn(turn: Turn) -> Drawn:
    """The trace of a turn that has ended, or whose ``ended_at`` is now."""
    context, ledger = read_context(turn.job.trace), turn.ledger
    own, *others = _spans(turn)
    depths = {own.span_id: 0}
    for span in others:  # a parent comes before what is under it
        depths[span.span_id] = depths[span.parent_id] + 1
    return Drawn(
        id=turn.id,
        request=times_of(turn).request,
        trace_id=context.trace_id if context else "",
        tenant=turn.tenant,
        model=model_of(turn.job),
        version=turn.job.version,
        state=turn.state.value,
        began_at=own.start,
        seconds=own.seconds,
        attempts=ledger.attempts if ledger else 0,
        waited_s=ledger.waited_s if ledger else 0.0,
        paced_s=ledger.paced_s if ledger else 0.0,
        spans=tuple(_drawn(span, depths[span.span_id], own.start) for span in (own, *others)),
        ledger=None if ledger is None else _ledger(ledger),
    )


def _ledger(ledger: Ledger) -> DrawnLedger:
    return DrawnLedger(
        queued_tokens=ledger.queued,
        prefilled_tokens=ledger.prefilled,
        cached_tokens=ledger.cached,
        emitted_tokens=ledger.emitted,
        replayed_tokens=ledger.replayed,
        wasted_tokens=ledger.wasted,
        billed_tokens=ledger.billed,
        queue_s=ledger.queue_s,
        prefill_s=ledger.prefill_s,
        decode_s=ledger.decode_s,
        replay_s=ledger.replay_s,
        start_s=ledger.start_s,
        restarts=ledger.restarts,
        restart_s=ledger.restart_s,
    )


def step_seconds(turn: Turn) -> dict[str, float]:
    """Seconds of each step of a turn, those of all attempts together."""
    found: dict[str, float] = {}
    for span in leaves(_spans(turn)):
        found[span.name] = found.get(span.name, 0.0) + span.seconds
    return found


def _spans(turn: Turn) -> list[Span]:
    return turn_spans(turn, TraceContext(_NO_TRACE, turn_span_id(turn.id), sampled=False))


def _drawn(span: Span, depth: int, began_at: float) -> DrawnSpan:
    return DrawnSpan(
        name=span.name,
        depth=depth,
        start_s=span.start - began_at,
        seconds=span.seconds,
        worker=str(span.attributes.get("axon.worker") or span.attributes.get("axon.worker.incarnation", "")),
        cause=str(span.attributes.get("axon.attempt.cause", "")),
        error=span.error,
    )
