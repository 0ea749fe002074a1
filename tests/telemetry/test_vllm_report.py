"""What a worker knows, under vLLM's names."""

from dataclasses import replace

import pytest

from axon.domain.billing.ledger import Ledger
from axon.domain.billing.usage import Usage
from axon.domain.log.chunk import End
from axon.domain.turn import TurnState, opened
from axon.engine.protocol.messages import Counters
from axon.telemetry.engine_report import EngineReport, WorkerLabels
from axon.telemetry.metrics import Metrics
from axon.telemetry.vllm_report import finished_reason
from tests.contracts.builders import make_job

SMALL = {"model_name": "small", "engine": "0"}


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"vllm:{name}", {**SMALL, **labels})


def test_an_engines_state_is_shown() -> None:
    metrics = Metrics("vllm")
    report = EngineReport(metrics, WorkerLabels("small"))
    for preemptions in (0, 2):
        counters = Counters(
            num_running=3,
            num_waiting=1,
            batch_tokens=40,
            blocks_used=1,
            blocks_free=3,
            preemptions=preemptions,
        )
        report.stepped(counters, 3)
    found = [value(metrics, name) for name in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc")]
    assert found == [3, 1, 0.25]
    assert value(metrics, "generation_tokens_total") == 6
    assert value(metrics, "num_preemptions_total") == 2
    assert value(metrics, "iteration_tokens_total_count") == 2


def test_the_queue_and_all_engines_of_a_model_wait_together() -> None:
    metrics = Metrics("vllm")
    for num in (1, 2):
        EngineReport(metrics, WorkerLabels("small", f"v{num}")).stepped(Counters(num_waiting=num), 0)
    assert metrics.vllm is not None
    metrics.vllm.waits("small", "queue", 4)
    assert value(metrics, "num_requests_waiting") == 7
    assert value(metrics, "num_requests_running", engine="1") == 0


def test_gaps_are_between_the_tokens_of_one_sequence() -> None:
    metrics = Metrics("vllm")
    report = EngineReport(metrics, WorkerLabels("small")).vllm
    assert report is not None
    report.drew(["a", "b"], 1.0)
    report.drew(["a"], 1.5)
    report.left(["a"])
    report.drew(["a", "b"], 4.0)
    assert value(metrics, "inter_token_latency_seconds_count") == 2
    assert value(metrics, "inter_token_latency_seconds_sum") == 3.5


def test_an_ended_turn_is_observed() -> None:
    metrics = Metrics("vllm")
    ledger = Ledger(emitted=5, attempts=1, queue_s=1.0, prefill_s=0.5, decode_s=2.0)
    usage = Usage(prompt_tokens=3, output_tokens=5)
    turn = replace(opened(make_job()), state=TurnState.COMPLETED, usage=usage, ledger=ledger)
    EngineReport(metrics, WorkerLabels("small")).ended(turn)
    assert value(metrics, "request_success_total", finished_reason="stop") == 1
    assert value(metrics, "e2e_request_latency_seconds_sum") == 3.5
    assert value(metrics, "request_inference_time_seconds_sum") == 2.5
    assert value(metrics, "request_time_per_output_token_seconds_sum") == 0.5
    assert value(metrics, "request_max_num_generation_tokens_sum") == 8


@pytest.mark.parametrize(
    ("state", "reasons", "expected"),
    [
        (TurnState.COMPLETED, ["stop"], "stop"),
        (TurnState.COMPLETED, ["tool_calls"], "stop"),
        (TurnState.COMPLETED, ["stop", "length"], "length"),
        (TurnState.CANCELLED, [], "abort"),
        (TurnState.FAILED, [], "error"),
        (TurnState.EXPIRED, ["stop"], "error"),
    ],
)
def test_ways_to_end_have_vllms_words(state: TurnState, reasons: list[str], expected: str) -> None:
    assert finished_reason(state, tuple(End(0, reason) for reason in reasons)) == expected


def test_a_model_that_is_gone_from_the_fleet_is_not_shown_any_more() -> None:
    metrics = Metrics("vllm")
    assert metrics.vllm is not None
    metrics.vllm.fleet("small", num_running=2, kv_usage=0.5)
    assert value(metrics, "num_requests_running") == 2
    metrics.vllm.hide_fleet("small")
    assert value(metrics, "num_requests_running") is None
