"""Traces at a gateway: whose trace a request is in, what its job carries, and what is exported when it was answered."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import structlog

from axon.domain.billing.ledger import Ledger
from axon.domain.log.chunk import Chunk
from axon.domain.tracing.context import read_context, turn_span_id
from axon.domain.tracing.span import Span
from axon.errors import AxonError, LimitReached, Overloaded
from axon.gateway.http.errors import status_of
from axon.gateway.http.tracing import RequestTraces, note_accepted, steps_of, trace_of_job
from axon.runtime.clock import SystemClock
from axon.telemetry.config import TracesConfig
from axon.telemetry.traces.recorder import Recorder
from tests.domain.strategies import make_job

CALLER = f"00-{'a' * 32}-{'b' * 16}-01"


class Edge:
    """A gateway's traces, and what they export."""

    def __init__(self, **config: object) -> None:
        self.got: list[Span] = []
        self.recorder = Recorder(TracesConfig(endpoint="x", **config), self._export, lambda result, number: None)  # type: ignore[arg-type]
        self.traces = RequestTraces(self.recorder, SystemClock())

    def _export(self, spans: Sequence[Span]) -> bool:
        self.got.extend(spans)
        return True

    def begin(self, **headers: str) -> dict[str, Any]:
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        scope: dict[str, Any] = {"type": "http", "method": "POST", "path": "/x", "headers": raw}
        self.traces.begin(scope)
        return scope

    def end(self, scope: dict[str, Any], status: int = 200) -> list[Span]:
        self.traces.ended(scope, "/x", status)
        self.recorder.close()
        return self.got


def test_a_callers_trace_is_gone_on_with() -> None:
    scope = Edge(sample_ratio=0.0).begin(traceparent=CALLER)
    assert structlog.contextvars.get_contextvars()["trace_id"] == "a" * 32
    trace, state = trace_of_job(scope, {"traceparent": CALLER, "tracestate": "v=1"}, "job")
    assert (trace, state) == (CALLER, "v=1")


def test_a_request_of_nobody_is_sampled_by_its_share() -> None:
    for ratio in (0.0, 1.0):
        scope = Edge(sample_ratio=ratio).begin(traceparent="nonsense")
        found = read_context(trace_of_job(scope, {}, "job")[0])
        assert found is not None
        assert (found.parent_id, found.sampled) == (turn_span_id("job"), bool(ratio))


@pytest.mark.parametrize(
    ("headers", "carried"),
    [
        ({}, ("", "")),
        ({"traceparent": CALLER}, (CALLER, "")),
        ({"traceparent": "x" * 1000, "tracestate": "v=1"}, ("", "")),
        ({"traceparent": CALLER, "tracestate": "v" * 1000}, (CALLER, "")),
    ],
)
def test_without_traces_a_job_carries_what_its_caller_sent(headers: dict[str, str], carried: tuple[str, str]) -> None:
    assert trace_of_job({}, headers, "job") == carried
    assert steps_of({}) is None


def test_an_accepted_turn_is_delivered() -> None:
    edge = Edge(sample_ratio=1.0)
    scope = edge.begin()
    steps = steps_of(scope)
    assert steps is not None
    job = make_job(trace=trace_of_job(scope, {}, make_job().id)[0])
    note_accepted(steps, job, publishing_at=1.0, published_at=2.0)
    saw = edge.traces.follows(steps, job)
    saw(Chunk(first=1, epoch=1))
    saw(Chunk(first=1, epoch=1, terminal="completed", ledger=Ledger(attempts=1)))
    own, publish, deliver = edge.end(scope)
    assert own.parent_id == turn_span_id(job.id)
    assert (publish.seconds, deliver.name) == (1.0, "stream.deliver")
    assert own.attributes["http.response.status_code"] == 200


def test_a_caller_without_a_key_does_not_decide_what_is_sampled() -> None:
    edge = Edge(sample_ratio=0.0)
    assert edge.end(edge.begin(traceparent=CALLER), 401) == []
    edge = Edge(sample_ratio=0.0)
    assert [own.trace_id for own in edge.end(edge.begin(traceparent=CALLER), 503)] == ["a" * 32]
    edge = Edge(sample_ratio=0.0)
    scope = edge.begin(traceparent=CALLER)
    scope["axon.identity"] = SimpleNamespace(tenant="acme")
    assert [own.attributes["axon.tenant.id"] for own in edge.end(scope)] == ["acme"]


@pytest.mark.parametrize(("error", "marked"), [(LimitReached(), ""), (Overloaded(), "overloaded")])
def test_a_refused_request_has_a_span_with_its_code(error: AxonError, marked: str) -> None:
    """By OpenTelemetry's convention, what the client did wrong is no error of the server's span."""
    edge = Edge(sample_ratio=1.0)
    scope = edge.begin()
    scope["axon.error"] = error
    [own] = edge.end(scope, status_of(error))
    assert (own.name, own.error) == ("gateway.request", marked)
    assert own.attributes["axon.error.code"] == error.code
    assert own.attributes["http.response.status_code"] == status_of(error)


def test_a_request_whose_turn_was_not_accepted_is_exported_if_it_fails() -> None:
    """The queue did not confirm its job: there is no turn whose spans would tell of it."""
    edge = Edge(sample_ratio=0.0)
    scope = edge.begin()
    steps = steps_of(scope)
    assert steps is not None
    steps.turn("job").publishing = 1.0
    [own] = edge.end(scope, 503)
    assert own.attributes["axon.rebuilt.reason"] == "failed"


def test_a_request_that_nobody_sampled_is_exported_if_it_fails() -> None:
    edge = Edge(sample_ratio=0.0)
    assert edge.end(edge.begin()) == []
    edge = Edge(sample_ratio=0.0)
    [own] = edge.end(edge.begin(), 503)
    assert own.attributes["axon.rebuilt.reason"] == "failed"
    edge.traces.ended({}, "/x", 503)
