"""OTLP over HTTP and gRPC to a real receiver: what arrives is the span that was sent."""

import pytest

from axon.domain.tracing.span import Kind, Span
from axon.errors import Misconfigured
from axon.telemetry.config import TracesConfig
from axon.telemetry.traces.otlp import headers_of, http_endpoint, make_export
from tests.services.otlp import receiving
from tests.services.process import free_port

SPAN = Span(
    name="attempt",
    trace_id="0" * 31 + "a",
    span_id="0" * 15 + "b",
    parent_id="0" * 15 + "c",
    start=1_800_000_000.25,
    end=1_800_000_001.5,
    attributes={"n": 2, "text": "x", "is": True, "share": 0.5, "many": ("a", "b")},
    links=("0" * 15 + "d",),
    error="attempt_lost",
    kind=Kind.CONSUMER,
)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_span_arrives_as_it_was_sent(protocol: str) -> None:
    with receiving() as receiver:
        endpoint = receiver.url if protocol == "http" else receiver.grpc_target
        config = TracesConfig(endpoint=endpoint, protocol=protocol, headers="X-Key=abc, other=d")  # type: ignore[arg-type]
        export, close = make_export(config, service="axon-test")
        assert export([SPAN])
        close()
    [seen] = receiver.spans
    assert (seen.name, seen.trace_id, seen.span_id, seen.parent_id) == SPAN[:4]
    assert (seen.start, seen.end) == pytest.approx((SPAN.start, SPAN.end), abs=1e-6)
    assert (seen.links, seen.error) == (SPAN.links, SPAN.error)
    assert seen.attributes == SPAN.attributes
    assert seen.service == "axon-test"
    assert receiver.headers[0]["x-key"] == "abc"


def test_a_collector_that_refuses_is_no_exception() -> None:
    with receiving() as receiver:
        receiver.is_refusing = True
        export, close = make_export(TracesConfig(endpoint=receiver.url), service="axon-test")
        assert not export([SPAN])
        close()


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_collector_that_is_away_is_no_exception_and_has_its_time(protocol: str) -> None:
    endpoint = f"http://127.0.0.1:{free_port()}"
    config = TracesConfig(endpoint=endpoint, protocol=protocol, timeout_s=0.2)  # type: ignore[arg-type]
    export, close = make_export(config, service="axon-test")
    assert not export([SPAN])
    close()


def test_a_url_without_a_path_gets_otlps_own() -> None:
    assert http_endpoint("http://c:4318") == http_endpoint("http://c:4318/") == "http://c:4318/v1/traces"
    assert http_endpoint("http://c/otlp/v1/traces") == "http://c/otlp/v1/traces"


def test_headers_are_pairs() -> None:
    assert headers_of("") == {}
    assert headers_of("A=b=c,d=") == {"a": "b=c", "d": ""}
    with pytest.raises(Misconfigured, match=r"traces\.headers"):
        headers_of("nonsense")
