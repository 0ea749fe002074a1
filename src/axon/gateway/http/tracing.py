"""Traces of requests at a gateway: what is noted while one is answered, and its spans at the end. Knows no route."""

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import structlog
from starlette.types import Scope

from axon.domain.job import Job
from axon.domain.log.chunk import Chunk
from axon.domain.tracing.context import (
    MAX_STATE_CHARS,
    TraceContext,
    is_sampled,
    read_context,
    turn_span_id,
)
from axon.domain.tracing.request_spans import RequestSteps, reason_of, request_spans
from axon.domain.tracing.span import Attribute
from axon.gateway.http.errors import status_of
from axon.runtime.clock import Clock

if TYPE_CHECKING:
    from axon.errors import AxonError
    from axon.telemetry.traces.recorder import Recorder

STEPS = "axon.trace"
"""Key of the ASGI scope under which the steps of a traced request are kept."""
_PARENT, _STATE = "traceparent", "tracestate"


class RequestTraces:
    """``begin`` when a request arrives, ``ended`` when it was answered."""

    def __init__(self, recorder: "Recorder", clock: Clock) -> None:
        self._recorder, self._clock = recorder, clock
        self._random = random.Random()  # ids must differ, not be secret

    def begin(self, scope: Scope) -> None:
        """Decides whether the request is sampled, and begins to note its steps. Its log lines get the trace's id."""
        caller = read_context(_header(scope, _PARENT.encode()))
        trace_id = caller.trace_id if caller else self._new_id(128)
        span_id = self._new_id(64)
        context = TraceContext(
            trace_id,
            caller.parent_id if caller else span_id,
            is_sampled(caller, trace_id, self._recorder.config.sample_ratio),
        )
        scope[STEPS] = RequestSteps(
            context=context, span_id=span_id, arrived=self._clock.now(), is_called=caller is not None
        )
        structlog.contextvars.bind_contextvars(trace_id=trace_id, span_id=span_id)

    def follows(self, steps: RequestSteps, job: Job) -> Callable[[Chunk], None]:
        """Notes that the request's client reads a turn; returns what is to be called with each of its chunks."""
        turn = steps.turn(job.id)
        turn.context = turn.context or read_context(job.trace)

        def saw(chunk: Chunk) -> None:
            if not turn.first_chunk:
                turn.first_chunk = self._clock.now()
            if chunk.terminal:
                turn.terminal, turn.ledger = chunk.terminal, chunk.ledger

        return saw

    def ended(self, scope: Scope, route: str, status: int) -> None:
        """Exports the spans of a request that was answered, if it was sampled, slow, failed or failed over."""
        steps = steps_of(scope)
        if steps is None:
            return
        if steps.is_called and scope.get("axon.identity") is None:
            # Anybody can write a header: a caller that has shown no good key is sampled as everybody else.
            drawn = self._random.random() < self._recorder.config.sample_ratio
            steps.context = replace(steps.context, sampled=drawn)
        reason = reason_of(steps, status, slow_s=self._recorder.config.slow_s)
        if reason is None:
            return
        error: AxonError | None = scope.get("axon.error")
        problem = error.code if error is not None and status_of(error) >= 500 else ""
        spans = request_spans(
            steps, _attributes(scope, route, status), ended=self._clock.now(), error=problem, reason=reason
        )
        self._recorder.add(spans)

    def _new_id(self, num_bits: int) -> str:
        return f"{self._random.getrandbits(num_bits) or 1:0{num_bits // 4}x}"


def steps_of(scope: Mapping[str, Any]) -> RequestSteps | None:
    """Returns the steps of a request; None if it is not traced."""
    steps: RequestSteps | None = scope.get(STEPS)
    return steps


def note_accepted(steps: RequestSteps, job: Job, *, publishing_at: float, published_at: float) -> None:
    """Notes that a request's turn was accepted, and the times between which its job was published: 0 and 0 for that of
    an earlier request."""
    turn = steps.turn(job.id)
    turn.context, turn.is_new = read_context(job.trace), bool(published_at)
    turn.publishing, turn.published = publishing_at, published_at


def trace_of_job(scope: Mapping[str, Any], headers: Mapping[str, str], job_id: str) -> tuple[str, str]:
    """Returns the ``traceparent`` and ``tracestate`` of a request's job. Without traces they are the caller's own."""
    caller = read_context(headers.get(_PARENT, ""))
    state = headers.get(_STATE, "") if caller is not None else ""
    state = state if len(state) <= MAX_STATE_CHARS and state.isascii() else ""
    steps = steps_of(scope)
    if steps is None:
        return caller.header if caller else "", state
    own = steps.context
    parent_id = own.parent_id if steps.is_called else turn_span_id(job_id)
    return TraceContext(own.trace_id, parent_id, own.sampled).header, state


def _attributes(scope: Scope, route: str, status: int) -> dict[str, Attribute]:
    identity, error = scope.get("axon.identity"), scope.get("axon.error")
    found: dict[str, Attribute] = {
        "http.request.method": str(scope["method"]),
        "http.route": route,
        "http.response.status_code": status,
        "axon.request.id": str(scope.get("axon.request_id", "")),
    }
    if error is not None:
        found["axon.error.code"] = error.code
    return found | ({"axon.tenant.id": identity.tenant} if identity is not None else {})


def _header(scope: Scope, name: bytes) -> str:
    return next((value.decode("latin-1") for each, value in scope["headers"] if each == name), "")
