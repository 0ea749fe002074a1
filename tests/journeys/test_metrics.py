"""Every metric has a sample where it applies, and vLLM's dashboards find theirs, after some traffic of each kind."""

import json
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from axon.telemetry.metrics import Metrics
from tests.journeys.conftest import PATIENT
from tests.journeys.server import Server, running, wait_until
from tests.journeys.vllm_dashboards import MODEL, SCORED, SERIES, queries
from tests.services.prometheus import PrometheusServer
from tests.services.require import require

SETTINGS = {
    "engine_kind": "echo",
    "models": f"{MODEL}=default,vectors=default;echo_dimensions=16",
    "metrics_compat": "vllm",
    **PATIENT,
}
ELSEWHERE: Mapping[str, str] = {
    "axon_waiting_turns": "tests/gateway/offers/test_watch.py: of registered deployments",
    "axon_cold_turns_total": "set in gateway/turn/asking.py, for a deployment that is cold",
    "axon_scaling_turns_total": "set in gateway/turn/asking.py, for a full pool that may get more workers",
    "axon_fallbacks_total": "tests/fleet/test_fallbacks.py",
    "axon_gpu_utilization_ratio": "tests/telemetry/test_engine_report.py: there is no GPU",
    "axon_gpu_memory_bytes": "tests/telemetry/test_engine_report.py: there is no GPU",
    "axon_sessions_moved_total": "tests/fleet/test_rollouts.py",
    "axon_replicas": "tests/bootstrap/control/test_launching.py: there is no launcher",
    "axon_fleet_orders_total": "tests/bootstrap/control/test_launching.py: there is no launcher",
    "axon_scaling_decisions_total": "tests/bootstrap/control/test_gauges.py: there is no launcher",
    "axon_rollout_state": "tests/bootstrap/control/test_gauges.py: no rollout",
    "axon_rollout_step": "tests/bootstrap/control/test_gauges.py: no rollout",
    "axon_rollout_share_ratio": "tests/bootstrap/control/test_gauges.py: no rollout",
    "axon_rollout_stuck_seconds": "tests/bootstrap/control/test_gauges.py: no rollout",
    "axon_rollouts_ended_total": "tests/bootstrap/control/test_gauges.py: no rollout",
    "axon_dependency_errors_total": "tests/telemetry/test_measured.py: nothing fails",
    "axon_trace_spans_total": "tests/telemetry/traces: there is no collector",
    **dict.fromkeys(
        (
            "axon_kv_shelf_bytes",
            "axon_kv_shelf_moved_bytes_total",
            "axon_kv_shelf_hits_total",
            "axon_kv_shelf_damaged_total",
        ),
        "tests/journeys/test_kv_shelf.py: there is no shelf",
    ),
    "axon_files": "tests/bootstrap/control/test_gauges.py: counted twice a minute",
}
"""Metrics that one server with an echo engine has no sample of, and where they are tested."""


def chat(http: httpx.Client, text: str, **more: object) -> httpx.Response:
    body = {"model": MODEL, "messages": [{"role": "user", "content": text}], "max_tokens": 24, **more}
    return http.post("/v1/chat/completions", json=body)


def ask_everything(server: Server) -> None:
    """Some traffic of each kind."""
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
    with server.client() as http:
        for _ in range(2):
            assert chat(http, "a stream of a few tokens", stream=True).status_code == 200
            chat(http, "a form", response_format=form)
        assert chat(http, "x", model="none").status_code == 404
        first = http.post("/v1/responses", json={"model": MODEL, "input": "first"}).json()
        http.post("/v1/responses", json={"model": MODEL, "input": "then", "previous_response_id": first["id"]})
        assert http.post("/v1/embeddings", json={"model": "vectors", "input": ["a", "b"]}).status_code == 200
        line = {"custom_id": "1", "method": "POST", "url": "/v1/completions", "body": {"model": MODEL, "prompt": "a"}}
        file = http.post("/v1/files", files={"file": ("in.jsonl", json.dumps(line))}, data={"purpose": "batch"}).json()
        batch = {"input_file_id": file["id"], "endpoint": "/v1/completions", "completion_window": "24h"}
        http.post("/v1/batches", json=batch).raise_for_status()


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that was asked for everything."""
    with running(tmp_path_factory.mktemp("busy") / "data", **SETTINGS) as server:
        ask_everything(server)
        wait_until(lambda: server.metric("axon_batch_lines_total") == 1, "the batch's line is answered")
        yield server


def shown(server: Server) -> dict[str, list[dict[str, str]]]:
    """The labels of the samples of each name."""
    found: dict[str, list[dict[str, str]]] = {}
    for family in text_string_to_metric_families(httpx.get(server.metrics_url, timeout=60).text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample.labels)
    return found


def test_every_metric_that_applies_has_a_sample(busy: Server) -> None:
    def missing() -> set[str]:
        names = shown(busy)
        declared = Metrics("vllm").declared
        return {each.name for each in declared if f"{each.name}_count" not in names and each.name not in names}

    wait_until(lambda: missing() <= {*ELSEWHERE, "axon_rejected_total"}, "every metric has a sample")
    assert ELSEWHERE.keys() <= {each.name for each in Metrics().declared}


def test_what_the_dashboards_and_scorers_of_vllm_read_is_there_with_their_labels(busy: Server) -> None:
    names = shown(busy)
    assert [name for name in (*SERIES, *SCORED) if name not in names] == []
    for name in (*SERIES, *SCORED):
        assert all({"model_name", "engine"} <= labels.keys() for labels in names[name])
        assert any(labels["model_name"] == MODEL for labels in names[name]), name


def test_no_metric_has_a_word_of_a_prompt_or_a_key(busy: Server) -> None:
    text = httpx.get(busy.metrics_url, timeout=60).text
    assert "a stream of a few tokens" not in text
    assert busy.key not in text


@pytest.mark.services
def test_a_prometheus_finds_series_for_every_query_of_vllms_dashboards(busy: Server, tmp_path: Path) -> None:
    require("prometheus")
    server = PrometheusServer(tmp_path / "prometheus")
    server.start()
    try:
        server.scrape([int(busy.metrics_url.split(":")[2].split("/")[0])])
        wait_until(lambda: server.value("vllm:request_success_total") is not None, "the first scrape")
        before = server.value("sum(vllm:request_success_total)") or 0.0
        with busy.client() as http:
            for _ in range(3):
                chat(http, "between two scrapes", stream=True)
        wait_until(lambda: (server.value("sum(vllm:request_success_total)") or 0.0) >= before + 3, "the next scrape")
        empty = [each for each in queries("5m") if not server.query(each)]
        assert empty == []
    finally:
        server.stop()


def test_a_lost_engine_is_counted_and_its_time_measured(busy: Server) -> None:
    """The last of the file: it leaves the server with other engines."""
    before = busy.metric("axon_failovers_total")
    for pid in busy.engine_pids():
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: busy.metric("axon_failovers_total") >= before + 2, "both engines are missed")
    wait_until(lambda: busy.metric("axon_engine_up") == 2, "both are up again")
    assert busy.metric("axon_engine_starts_total") >= 4
    with busy.client() as http:
        assert chat(http, "after that").status_code == 200
