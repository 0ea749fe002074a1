"""Each benchmark at its smallest, as a user starts it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmarks.pages import STEPS

from tests.services.require import require

REPOSITORY = Path(__file__).resolve().parents[2]


def run(module: str) -> tuple[list[str], dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", module, "--smoke"],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    return lines, json.loads(lines[-1])


@pytest.mark.services
@pytest.mark.long("benchmarks")
def test_backups_are_measured_on_both_databases() -> None:
    lines, result = run("benchmarks.backup")
    assert lines[0] == "python -m benchmarks.backup --smoke"
    assert result["databases"].keys() == {"SQLite", "PostgreSQL"}
    assert all(figures["restored turns/s"] > 0 for figures in result["databases"].values())


@pytest.mark.long("benchmarks")
def test_the_page_is_measured_by_the_browsers_trace() -> None:
    require("chromium")
    lines, result = run("benchmarks.pages")
    assert lines[0] == "python -m benchmarks.pages --smoke"
    assert result["first_token"].keys() == {"API, plain client", "API", "page", "page adds"}
    assert all(result["first_token"][name]["median_ms"] > 0 for name in ("API, plain client", "API", "page"))
    assert tuple(result["page_steps"]) == STEPS
    assert all(figures["p10_ms"] >= 0 for figures in result["page_steps"].values())


@pytest.mark.long("benchmarks")
def test_rounds_of_tokens_are_measured_beside_none() -> None:
    lines, result = run("benchmarks.rounds")
    assert lines[0] == "python -m benchmarks.rounds --smoke"
    assert result["rows"].keys() == {"embedded, gather 0 s", "embedded, gather 0.03 s"}
    assert all(figures["cpu_token_us"] > 0 for figures in result["rows"].values())


@pytest.mark.long("benchmarks")
def test_the_comparison_prints_its_command_a_table_and_a_json_line() -> None:
    lines, result = run("benchmarks.cpu")
    assert lines[0] == "python -m benchmarks.cpu --smoke"
    assert result["peers"] == ["echo-peer"]
    assert result["loads"].keys() == {"looping", "chat"}
    for load in result["loads"].values():
        assert load["ratio_to_best_peer"].keys() == load["ttft_ratio_to_best_peer"].keys() == {"2"}
        assert load["engines"].keys() == {"axon", "axon-plain", "echo-peer"}
        assert load["engines"]["axon"]["streams"]["2"]["tokens_per_s"] > 0
    assert sum(line.startswith("| 2 | axon |") for line in lines) == 2
    assert 0 < result["loads"]["chat"]["engines"]["axon"]["streams"]["2"]["answer_tokens"] <= 16


@pytest.mark.long("benchmarks")
def test_the_comparison_of_embeddings_prints_its_command_a_table_and_a_json_line() -> None:
    lines, result = run("benchmarks.embeddings")
    assert lines[0] == "python -m benchmarks.embeddings --smoke"
    assert result["medians"].keys() == {"axon-echo", "echo-peer"}
    assert result["compared"].keys() == result["loads"].keys()
    for figures in result["medians"]["axon-echo"].values():
        assert figures["inputs_per_s"] > 0


@pytest.mark.long("benchmarks")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_comparison_leaves_no_server_behind(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.cpu", "--smoke"],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src"), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("  idle"):
                break
        servers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert len(servers) == 3
        process.send_signal(number)
    assert process.returncode != 0
    assert not [pid for pid in servers if Path(f"/proc/{pid}").exists()]


@pytest.mark.long("benchmarks")
def test_the_engines_benchmark_measures_every_claim() -> None:
    lines, result = run("benchmarks.engine")
    assert lines[0] == "python -m benchmarks.engine --smoke"
    parts = {row.partition(":")[0] for row in result["figures"]}
    assert parts == {"kv_cache", "batching", "conversation", "kv_memory", "long_prompt"}
    assert result["figures"]["batching: continuous against static"]["bound_of_these_lengths"] > 1


def path() -> None:
    """What the server adds to its engine."""
    lines, result = run("benchmarks.path")
    assert lines[0] == "python -m benchmarks.path --smoke"
    assert result["places"]["embedded"]["server_tokens_per_s"] > 0
    figures = result["places"]["embedded"]
    assert figures["reader_tokens_per_cpu_s"] > 0
    assert figures["at_once_ttft_p50_ms"] > 0
    assert sum(result["lag_buckets"]["embedded"].values()) > 0
    assert figures["lag_p50_ms"] <= figures["lag_p99_ms"] <= figures["lag_max_at_most_ms"]
    assert result["cpu_by_part"]["embedded"].keys() == {"serve", "engine"}
    assert figures.keys() >= {"cpu_request_ms", "cpu_token_us", "cpu_idle_ms_per_s"}


def memory() -> None:
    """With deaf readers, silent streams and kept sessions."""
    lines, result = run("benchmarks.memory")
    assert lines[0] == "python -m benchmarks.memory --smoke"
    assert result["parts"].keys() == {"readers", "followers", "sessions"}
    assert all(part["rss_mb_last"] > 0 and part["drift"] > 0 for part in result["parts"].values())
    assert result["parts"]["followers"]["ended"] == 0
    assert "stored_bytes_each" in result["parts"]["sessions"]


def fairness() -> None:
    """Beside a noisy neighbour."""
    lines, result = run("benchmarks.fairness")
    assert lines[0] == "python -m benchmarks.fairness --smoke"
    rows = result["places"]["embedded"]
    assert rows["everybody at its share"]["light"] > 0
    assert rows["one at ten times"]["num"] > 0
    assert result.keys() >= {"light_ttft_p99_ratio", "light_itl_p99_ratio", "throughput_ratio"}


def batches() -> None:
    """Beside a batch, and without."""
    lines, result = run("benchmarks.batches")
    assert lines[0] == "python -m benchmarks.batches --smoke"
    rows = result["places"]["model"]
    assert rows["beside"]["lines_per_s"] > 0
    assert min(rows[name]["num"] for name in ("without", "beside")) > 0
    assert result["ttft_p99_ratio"] > 0


def affinity() -> None:
    """With and without."""
    lines, result = run("benchmarks.affinity")
    assert lines[0] == "python -m benchmarks.affinity --smoke"
    assert result["rows"].keys() == {"with affinity", "without"}
    assert result["rows"]["with affinity"]["found"] == 1


@pytest.mark.long("benchmarks")
@pytest.mark.parametrize(
    "check",
    [path, memory, fairness, batches, pytest.param(affinity, marks=pytest.mark.services)],
    ids=lambda each: each.__name__,
)
def test_a_benchmark_that_starts_servers_prints_its_command_and_every_part(check: Callable[[], None]) -> None:
    check()


@pytest.mark.long("benchmarks")
def test_cold_starts_of_engines_and_of_a_whole_server_are_timed() -> None:
    lines, result = run("benchmarks.cold_start")
    assert lines[0] == "python -m benchmarks.cold_start --smoke"
    assert result["rows"].keys() == {"engine, cold process", "engine, spare process", "axon serve"}
    assert all(row["first_token_s"] > 0 for row in result["rows"].values())
    assert result["rows"]["engine, spare process"]["rss_mb"] > 0


def test_draft_models_are_compared_with_none() -> None:
    lines, result = run("benchmarks.drafts")
    assert lines[0] == "python -m benchmarks.drafts --smoke"
    assert result["drafts"].keys() == {"equal", "blurred", "random"}
    for by_streams in result["drafts"].values():
        assert by_streams.keys() == {"1", "2"}
        assert all(figures["low"] <= figures["ratio"] <= figures["high"] for figures in by_streams.values())
        assert all(figures["answers_compared"] > 0 for figures in by_streams.values())
