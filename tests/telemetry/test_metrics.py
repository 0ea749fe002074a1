"""Metrics: declared once, documented, bounded."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from axon.domain.billing.usage import Usage
from axon.telemetry.declared.declaring import Declared
from axon.telemetry.metrics import Metrics

REPOSITORY = Path(__file__).resolve().parents[2]
DECLARED = Metrics("vllm").declared
BY_TENANT = {"axon_requests_total", "axon_tokens_total", "axon_rejected_total"}


def test_each_metric_is_declared_once() -> None:
    names = [each.name for each in DECLARED]
    assert len(names) > 80
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("each", DECLARED, ids=lambda each: each.name)
def test_a_metric_has_a_sentence_a_unit_and_the_ending_of_its_kind(each: Declared) -> None:
    assert re.fullmatch(r"(axon|gen_ai)_[a-z_]+|vllm:[a-z0-9_]+", each.name)
    assert re.fullmatch(r"[A-Z0-9].*\.", each.sentence)
    assert each.unit
    assert each.subject
    assert each.name.endswith("_total") == (each.kind == "counter") or each.name == "vllm:iteration_tokens_total"
    assert bool(each.buckets) == (each.kind == "histogram")
    if each.unit == "seconds":
        assert each.name.endswith("_seconds")


def test_only_three_counters_say_the_tenant() -> None:
    assert {each.name for each in DECLARED if "tenant" in each.labels} == BY_TENANT


def test_what_is_declared_is_what_is_shown() -> None:
    shown = {
        f"{each.name}_total" if each.type == "counter" else each.name for each in Metrics("vllm").registry.collect()
    }
    declared = {each.name.removesuffix("_info") if each.kind == "info" else each.name for each in DECLARED}
    assert {name for name in shown if not name.startswith("process_")} == declared


def test_the_names_of_others_are_shown_only_when_asked_for() -> None:
    assert not [each for each in Metrics().declared if each.name.startswith("vllm:")]


def test_the_page_says_what_the_code_says() -> None:
    check = [sys.executable, str(REPOSITORY / "scripts" / "metrics_page.py"), "--check"]
    assert subprocess.run(check, cwd=REPOSITORY).returncode == 0


def test_two_processes_worth_of_metrics_fit_into_one() -> None:
    one, other = Metrics(), Metrics()
    one.streams.fenced_writes.inc()
    assert other.registry.get_sample_value("axon_fenced_writes_total") == 0


def test_tenants_beyond_the_bound_count_together() -> None:
    metrics = Metrics()
    for number in range(150):
        metrics.usage(f"tenant-{number}", Usage(prompt_tokens=2, output_tokens=1))
    metrics.usage("tenant-0", Usage(prompt_tokens=2))

    def prompt_tokens(tenant: str) -> float | None:
        return metrics.registry.get_sample_value("axon_tokens_total", {"kind": "prompt", "tenant": tenant})

    assert prompt_tokens("tenant-0") == 4
    assert prompt_tokens("tenant-100") is None
    assert prompt_tokens("other") == 100
