"""Metrics: declared once, documented, bounded, served."""

import ast
import inspect
import re
import urllib.error
import urllib.request

import pytest

from axon.domain.tenant import Tier
from axon.domain.usage import Usage
from axon.engine.protocol.messages import Counters, Gpu
from axon.telemetry import metrics as module
from axon.telemetry.metrics import Metrics

SMALL = {"model": "small"}


def names_in_the_code() -> list[str]:
    tree = ast.parse(inspect.getsource(module))
    constants = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return [value for value in constants if isinstance(value, str) and re.fullmatch(r"axon_[a-z_]+", value)]


def test_each_metric_is_declared_once() -> None:
    names = names_in_the_code()
    assert len(names) > 15  # the scan finds them
    assert len(set(names)) == len(names)


def test_each_metric_has_a_sentence_and_a_unit_in_its_name() -> None:
    for family in Metrics().registry.collect():
        if not family.name.startswith("axon_"):
            continue
        assert family.documentation.endswith("."), family.name
        if family.type == "histogram":
            assert family.name.endswith("_seconds"), family.name


def test_two_processes_worth_of_metrics_fit_into_one() -> None:
    one, other = Metrics(), Metrics()
    one.fenced_writes.inc()
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


def test_preemptions_go_on_counting_when_the_engine_starts_over() -> None:
    metrics = Metrics()
    for seen in (2, 5, 1):
        metrics.engine("small", Counters(preemptions=seen, blocks_free=3, blocks_used=1))
    assert metrics.registry.get_sample_value("axon_preemptions_total", SMALL) == 6
    assert metrics.registry.get_sample_value("axon_kv_usage_ratio", SMALL) == 0.25
    assert metrics.registry.get_sample_value("axon_kv_blocks", {"state": "free", **SMALL}) == 3


def test_engines_of_two_models_are_told_apart() -> None:
    metrics = Metrics()
    for model, num in (("small", 3), ("large", 5), ("small", 4)):
        metrics.engine(model, Counters(preemptions=num, blocks_used=num))
    for model in ("small", "large"):
        assert (
            metrics.registry.get_sample_value("axon_preemptions_total", {"model": model})
            == {"small": 4, "large": 5}[model]
        )


def test_slots_are_told_by_tier_and_who_yielded_is_counted() -> None:
    metrics = Metrics()
    metrics.engine("small", Counters(yielded=2, running_by_priority={1: 3, -1: 2}))
    metrics.engine("small", Counters(yielded=3, running_by_priority={1: 1, 0: 4}))
    tiers = {tier: metrics.registry.get_sample_value("axon_slots", {"tier": tier, **SMALL}) for tier in Tier}
    assert tiers == {"priority": 1, "default": 4, "flex": 0}
    assert metrics.registry.get_sample_value("axon_yielded_total", SMALL) == 3


def test_a_step_that_changes_nothing_sets_no_gauge(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics, num_set = Metrics(), 0

    def count(_num: float) -> None:
        nonlocal num_set
        num_set += 1

    monkeypatch.setattr(metrics.batch_size.labels("small"), "set", count)
    for num_running in (1, 1, 2, 2, 1):
        metrics.engine("small", Counters(num_running=num_running, step_s=0.01))
    assert num_set == 3
    assert metrics.registry.get_sample_value("axon_step_seconds_count", SMALL) == 5


def test_gpus_are_told_one_by_one() -> None:
    metrics = Metrics()
    metrics.engine("small", Counters(gpus=[Gpu(0, 0.5, 1 << 30), Gpu(1, 1.0, 2 << 30)]))
    assert metrics.registry.get_sample_value("axon_gpu_utilization_ratio", {"gpu": "0"}) == 0.5
    assert metrics.registry.get_sample_value("axon_gpu_memory_bytes", {"gpu": "1"}) == 2 << 30


def test_metrics_are_served_at_their_path_only_and_the_port_is_free_afterwards() -> None:
    port, close = Metrics().serve("127.0.0.1", 0)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as response:
            text = response.read().decode()
        assert "axon_build_info{" in text
        assert "# HELP axon_kv_usage_ratio " in text
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/")
        caught.value.close()
        assert caught.value.code == 404
    finally:
        close()
    again, close = Metrics().serve("127.0.0.1", port)
    close()
    assert again == port
