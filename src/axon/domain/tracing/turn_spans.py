"""The spans of a turn, made of its ledger's times once it has ended. Pure.

    chat MODEL ─┬─ admission ── session.load ── model.start ── job.queue_wait
                ├─ attempt ─┬─ claim ── engine.prefill ── engine.decode
                ├─ server.restart
                └─ attempt (linked to the one before) ─ …

Whoever ends a turn makes all of them: a turn ends exactly once, so its trace is whole whichever worker or gateway died.
From ``session.load`` on, the steps follow each other without a gap, and their sum is the ledger's ``whole_s``. The time
without an owner after a failure belongs to the attempt that was lost; that of a restart of the whole server is a step
of its own, as is the start of a model that nobody had used.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from axon.domain.billing.ledger import Ledger
from axon.domain.job import Job
from axon.domain.reply import CompletionReply, EmbeddingReply
from axon.domain.times import Attempt, Times
from axon.domain.tracing.content import content_of
from axon.domain.tracing.context import TraceContext, attempt_span_id, step_span_id, turn_span_id
from axon.domain.tracing.span import Attribute, Kind, Span
from axon.domain.turn import Turn, TurnState

PROVIDER = "axon"
_FAILED = frozenset({TurnState.FAILED, TurnState.EXPIRED})
_SLACK_S = 1e-3
"""Two clocks may differ by this much."""
_LOST = frozenset({"lost", "engine", "restart"})
"""Causes of an attempt that say that the one before broke off."""


def turn_spans(turn: Turn, context: TraceContext, *, reason: str = "", with_content: bool = False) -> list[Span]:
    """The spans of an ended turn, its own first. ``reason`` is given where the turn was not sampled: why its spans are
    made all the same."""
    times = times_of(turn)
    end = turn.ended_at or turn.opened_at
    own_id = turn_span_id(turn.id)
    rebuilt: dict[str, Attribute] = {"axon.rebuilt": True, "axon.rebuilt.reason": reason} if reason else {}
    own = Span(
        name=f"{operation_of(turn.job)} {model_of(turn.job)}",
        trace_id=context.trace_id,
        span_id=own_id,
        parent_id="" if context.parent_id == own_id else context.parent_id,
        start=min(times.arrived or turn.opened_at, turn.opened_at),
        end=max(end, turn.opened_at),
        attributes={**attributes_of(turn), **(content_of(turn) if with_content else {}), **rebuilt},
        error=turn.code or turn.state.value if turn.state in _FAILED else "",
    )
    made = _Steps(context.trace_id, own_id, rebuilt)
    return [own, *made.before(turn, times), *made.attempts(turn, times, _closed_at(turn, times), end)]


class _Steps:
    """Makes the spans under a turn's."""

    def __init__(self, trace_id: str, turn_span: str, shared: Mapping[str, Attribute]) -> None:
        self._trace_id, self._turn_span, self._shared = trace_id, turn_span, shared

    def before(self, turn: Turn, times: Times) -> Iterator[Span]:
        """What came before the first attempt."""
        published = turn.opened_at + times.loaded_s
        taken = _left(times.attempts[0]) if times.attempts else turn.ended_at or published
        if times.arrived:
            yield self._step("admission", times.arrived, turn.opened_at)
        yield self._step("session.load", turn.opened_at, published)
        started = min(turn.opened_at + turn.ledger.start_s, taken) if turn.ledger and turn.ledger.start_s else published
        if started > published:
            yield self._step("model.start", published, started)
        yield self._step("job.queue_wait", max(published, started), taken)

    def attempts(self, turn: Turn, times: Times, closed: float, end: float) -> Iterator[Span]:
        """The attempts in order, each with its steps; ``closed`` is the end of the last one's generation."""
        last_id, worked_until = "", turn.opened_at + times.loaded_s
        for number, (attempt, later) in enumerate(zip_longest(times.attempts, times.attempts[1:]), 1):
            until, generated = (end, closed) if later is None else (_left(later), _left(later))
            span_id = attempt_span_id(turn.id, attempt.epoch)
            if attempt.restart_s:
                yield self._step("server.restart", max(worked_until, _left(attempt)), _began(attempt), of=span_id)
            yield Span(
                name="attempt",
                trace_id=self._trace_id,
                span_id=span_id,
                parent_id=self._turn_span,
                start=_began(attempt),
                end=max(until, _began(attempt)),
                attributes={**_attempt_attributes(attempt, number), **self._shared},
                links=(last_id,) if last_id else (),
                error="attempt_lost" if later is not None and later.cause in _LOST else "",
                kind=Kind.CONSUMER,
            )
            yield from self._generation(attempt, span_id, generated)
            last_id, worked_until = span_id, attempt.claimed_at + (attempt.silent_s or 0.0)

    def _generation(self, attempt: Attempt, parent: str, until: float) -> Iterator[Span]:
        claimed, replay = attempt.claimed_at, {"axon.replay": True} if attempt.after else {}
        yield self._step("claim", _began(attempt), claimed, parent)
        first = until if attempt.silent_s is None else claimed + attempt.silent_s
        yield self._step("engine.prefill", claimed, first, parent, replay)
        if attempt.silent_s is not None:
            yield self._step("engine.decode", first, until, parent)

    def _step(
        self,
        name: str,
        start: float,
        end: float,
        parent: str = "",
        more: Mapping[str, Attribute] | None = None,
        *,
        of: str = "",
    ) -> Span:
        """``of`` tells steps of one name under one parent apart."""
        parent = parent or self._turn_span
        return Span(
            name=name,
            trace_id=self._trace_id,
            span_id=step_span_id(of or parent, name),
            parent_id=parent,
            start=start,
            end=max(start, end),
            attributes={**self._shared, **(more or {})},
        )


def times_of(turn: Turn) -> Times:
    """When the turn's steps happened. A ledger of an earlier release, or none, has sums alone."""
    job, ledger = turn.job, turn.ledger
    if ledger is not None and ledger.times is not None:
        return ledger.times
    attempts: tuple[Attempt, ...] = ()
    if ledger is not None and ledger.attempts:
        silent_s = ledger.prefill_s if ledger.emitted else None
        attempts = (Attempt(0, claimed_at=turn.opened_at + ledger.queue_s, silent_s=silent_s),)
    return Times(job.arrived, job.loaded_s, job.request, attempts)


def _closed_at(turn: Turn, times: Times) -> float:
    """The end of the last attempt's generation: the ledger's, if it was closed by a worker, else the turn's."""
    ledger, end = turn.ledger, turn.ended_at or turn.opened_at
    if ledger is None or not times.attempts or not turn.state.terminal:
        return end
    last = times.attempts[-1]
    closed = turn.opened_at + ledger.whole_s
    begun = last.claimed_at + (last.silent_s or 0.0)
    return closed if begun - _SLACK_S <= closed <= end + _SLACK_S else end


def _began(attempt: Attempt) -> float:
    return attempt.claimed_at - attempt.claim_s


def _left(attempt: Attempt) -> float:
    """When the job was left before this attempt: before its claim, or before the restart that it follows."""
    return min(_began(attempt), attempt.claimed_at - attempt.restart_s)


def operation_of(job: Job) -> str:
    """The operation's name in OpenTelemetry's GenAI conventions."""
    match job.reply:
        case EmbeddingReply():
            return "embeddings"
        case CompletionReply():
            return "text_completion"
    return "chat"


def model_of(job: Job) -> str:
    """The model's name as the client wrote it, or else that of the deployment that answers."""
    return job.reply.model or job.deployment


def attributes_of(turn: Turn) -> dict[str, Attribute]:
    """The attributes of a turn's span: GenAI's where they name the thing, ours elsewhere. No text of the user's."""
    job, sampling, usage = turn.job, turn.job.sampling, turn.usage
    found: dict[str, Attribute] = {
        "gen_ai.operation.name": operation_of(job),
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.request.model": model_of(job),
        "gen_ai.request.choice.count": job.choices,
        "gen_ai.request.seed": job.seed,
        "gen_ai.request.max_tokens": sampling.max_tokens,
        "gen_ai.request.temperature": sampling.temperature,
        "gen_ai.request.top_p": sampling.top_p,
        "gen_ai.request.top_k": sampling.top_k,
        "gen_ai.response.id": turn.id,
        "gen_ai.response.model": job.version,
        "gen_ai.response.finish_reasons": tuple(end.reason for end in turn.ends),
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
        "axon.tenant.id": turn.tenant,
        "axon.deployment": job.deployment,
        "axon.state": turn.state.value,
        "axon.background": job.background,
        **_latencies(turn.ledger),
    }
    optional = {
        "gen_ai.conversation.id": job.session,
        "axon.request.id": job.request or (times_of(turn).request),
        "axon.fallback": job.fallback,
        "error.type": (turn.code or turn.state.value) if turn.state in _FAILED else "",
    }
    return found | {name: value for name, value in optional.items() if value}


def _latencies(ledger: Ledger | None) -> dict[str, Attribute]:
    """A ledger's seconds, under the names that vLLM uses where it has one."""
    if ledger is None:
        return {}
    return {
        "gen_ai.latency.time_in_queue": ledger.queue_s,
        "gen_ai.latency.time_in_model_prefill": ledger.prefill_s,
        "gen_ai.latency.time_in_model_decode": ledger.decode_s,
        "gen_ai.latency.e2e": ledger.whole_s,
        "axon.latency.replay": ledger.replay_s,
        "axon.latency.restart": ledger.restart_s,
        "axon.latency.waited": ledger.waited_s,
        "axon.latency.paced": ledger.paced_s,
        "axon.attempts": ledger.attempts,
    }


def _attempt_attributes(attempt: Attempt, number: int) -> dict[str, Attribute]:
    found: dict[str, Attribute] = {"axon.attempt": number, "axon.attempt.after_tokens": attempt.after}
    optional = {
        "axon.worker": attempt.name,
        "axon.worker.incarnation": attempt.worker,
        "axon.attempt.cause": attempt.cause,
    }
    return found | {name: value for name, value in optional.items() if value}


def leaves(spans: Sequence[Span]) -> list[Span]:
    """The spans that no other is under: those whose seconds may be added up."""
    parents = {span.parent_id for span in spans}
    return [span for span in spans if span.span_id not in parents]
