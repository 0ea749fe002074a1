"""The export of traces: nothing without a collector, and of turns what was sampled or is worth a look."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from axon.bootstrap import traces
from axon.bootstrap.traces import open_traces, turn_traces
from axon.domain.tracing.span import Span
from axon.domain.turn import Turn, TurnState
from axon.errors import Misconfigured
from axon.telemetry.config import TracesConfig
from axon.telemetry.metrics import Metrics
from axon.telemetry.traces.recorder import Recorder
from tests.domain.tracing.turns import turn_of

TURN = turn_of([(0.5, 0.1, 1.0, 2.0)])


def exported(turn: Turn, **config: object) -> list[Span]:
    got: list[Span] = []

    def export(spans: Sequence[Span]) -> bool:
        got.extend(spans)
        return True

    recorder = Recorder(TracesConfig(endpoint="x", **config), export, lambda result, number: None)  # type: ignore[arg-type]
    traced = turn_traces(recorder)
    assert traced is not None
    traced(turn)
    recorder.close()
    return got


def with_trace(sampled: bool) -> Turn:
    return replace(TURN, job=replace(TURN.job, trace=f"00-{'a' * 32}-{'b' * 16}-0{int(sampled)}"))


def test_a_defect_costs_the_trace_and_not_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **more: object) -> list[Span]:
        raise ZeroDivisionError

    monkeypatch.setattr(traces, "turn_spans", broken)
    with capture_logs() as lines:
        assert exported(with_trace(sampled=True)) == []
    assert [line["event"] for line in lines] == ["traces.turn_left_out"]


def test_nothing_is_opened_without_a_collector() -> None:
    assert open_traces(TracesConfig(), Metrics(), service="axon") is None
    assert turn_traces(None) is None


def test_a_server_without_a_collector_imports_no_exporter() -> None:
    code = "import sys, axon.bootstrap.embedded, axon.gateway.app; print(sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "axon.bootstrap.traces" in loaded
    assert not any(name in loaded for name in ("opentelemetry.sdk", "opentelemetry.exporter", "axon.telemetry.traces"))


def test_a_share_beyond_one_is_refused() -> None:
    with pytest.raises(Misconfigured, match="sample_ratio"):
        open_traces(TracesConfig(endpoint="http://c", sample_ratio=1.5), Metrics(), service="axon")


def test_a_sampled_turn_is_exported_unmarked() -> None:
    spans = exported(with_trace(True))
    assert spans
    assert not any("axon.rebuilt" in span.attributes for span in spans)


def test_of_the_others_those_that_are_worth_a_look() -> None:
    assert exported(with_trace(False)) == []
    assert exported(replace(with_trace(False), state=TurnState.FAILED))[0].attributes["axon.rebuilt.reason"] == "failed"
    assert exported(with_trace(False), slow_s=1.0)[0].attributes["axon.rebuilt.reason"] == "slow"
    assert exported(TURN) == [], "a turn without a trace context"


@pytest.mark.parametrize("endpoint", ["foo:bar", "collector:4318", "http://", "http://c:port", "ftp://c", "http://a b"])
def test_an_endpoint_that_is_no_url_is_refused(endpoint: str) -> None:
    with pytest.raises(Misconfigured, match=r"traces\.endpoint"):
        open_traces(TracesConfig(endpoint=endpoint), Metrics(), service="axon")
