"""An ended turn becomes metrics: how it ended, its tokens and where its time went."""

from dataclasses import replace

from axon.domain.billing.ledger import Ledger
from axon.domain.billing.usage import Usage
from axon.domain.turn import Turn, TurnState, opened
from axon.telemetry.metrics import Metrics
from axon.telemetry.turn_report import report_turn
from tests.contracts.builders import make_job

SMALL = {"model": "small", "version": "v1", "class": "default"}
GENAI = {
    "gen_ai_operation_name": "chat",
    "gen_ai_provider_name": "axon",
    "gen_ai_request_model": "small",
    "gen_ai_response_model": "v1",
}
LEDGER = Ledger(queued=3, emitted=5, attempts=1, queue_s=1.0, prefill_s=0.5, decode_s=2.0, waited_s=0.25, wasted=1)


def make_turn(state: TurnState = TurnState.COMPLETED, code: str = "") -> Turn:
    usage = Usage(prompt_tokens=3, cached_tokens=2, output_tokens=5)
    return replace(opened(make_job()), state=state, code=code, usage=usage, ledger=LEDGER)


def test_a_completed_turn_is_in_our_metrics_and_in_those_of_the_conventions() -> None:
    metrics = Metrics()
    report_turn(metrics, make_turn())

    def value(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(name, labels)

    assert value("axon_turns_total", **SMALL, outcome="completed") == 1
    assert value("axon_tokens_total", kind="output", tenant="acme") == 5
    assert value("axon_model_tokens_total", **SMALL, kind="cached") == 2
    assert value("axon_prefill_seconds_sum", **SMALL) == 0.5
    assert value("axon_decode_seconds_sum", **SMALL) == 2.0
    assert value("axon_turn_duration_seconds_sum", **SMALL) == LEDGER.whole_s
    assert value("axon_slot_wait_seconds_sum", **SMALL) == 0.25
    assert value("gen_ai_server_request_duration_seconds_sum", **GENAI, error_type="") == LEDGER.whole_s
    assert value("gen_ai_server_time_to_first_token_seconds_sum", **GENAI) == 1.5
    assert value("gen_ai_server_time_per_output_token_seconds_sum", **GENAI) == 0.5
    assert value("gen_ai_client_token_usage_sum", **GENAI, gen_ai_token_type="input") == 3


def test_a_failure_has_its_code_as_the_type_of_the_error() -> None:
    metrics = Metrics()
    report_turn(metrics, make_turn(TurnState.FAILED, "worker_crash"))
    labels = {**GENAI, "error_type": "worker_crash"}
    assert metrics.registry.get_sample_value("gen_ai_server_request_duration_seconds_count", labels) == 1


def test_a_turn_that_no_worker_began_has_no_times() -> None:
    metrics = Metrics()
    report_turn(metrics, replace(make_turn(TurnState.CANCELLED), ledger=None))
    assert metrics.registry.get_sample_value("axon_turns_total", {**SMALL, "outcome": "cancelled"}) == 1
    assert metrics.registry.get_sample_value("axon_turn_duration_seconds_count", SMALL) is None
