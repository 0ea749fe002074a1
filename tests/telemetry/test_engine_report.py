"""What an engine reports becomes metrics of its worker."""

import pytest

from axon.domain.tenants.tenant import Tier
from axon.engine.protocol.messages import Counters, Gpu, ShelfCounters
from axon.telemetry.engine_report import EngineReport, WorkerLabels
from axon.telemetry.metrics import Metrics

WHO = WorkerLabels("small", "v1", "worker-1", "zone-a")
SMALL = WHO._asdict()


def test_preemptions_go_on_counting_when_the_engine_starts_over() -> None:
    metrics = Metrics()
    report = EngineReport(metrics, WHO)
    for seen in (2, 5, 1):
        report.stepped(Counters(preemptions=seen, blocks_free=3, blocks_used=1), 0)
    assert metrics.registry.get_sample_value("axon_preemptions_total", SMALL) == 6
    assert metrics.registry.get_sample_value("axon_kv_usage_ratio", SMALL) == 0.25
    assert metrics.registry.get_sample_value("axon_kv_blocks", {"state": "free", **SMALL}) == 3


def test_a_shelf_is_shown_where_there_is_one_and_goes_on_counting_when_the_engine_starts_over() -> None:
    metrics = Metrics()
    report = EngineReport(metrics, WHO)
    value = metrics.registry.get_sample_value
    report.stepped(Counters(), 0)
    assert value("axon_kv_shelf_bytes", {"place": "host", **SMALL}) is None
    for loaded in (2, 5, 1):
        shelf = ShelfCounters(host_bytes=7, file_bytes=9, loaded_bytes=loaded, loaded_tokens=loaded, damaged=1)
        report.stepped(Counters(shelf=shelf), 0)
    assert value("axon_kv_shelf_bytes", {"place": "file", **SMALL}) == 9
    assert value("axon_kv_shelf_moved_bytes_total", {"way": "load", **SMALL}) == 6
    assert value("axon_kv_shelf_hits_total", SMALL) == 6
    assert value("axon_kv_shelf_damaged_total", SMALL) == 1
    report.closed()
    assert value("axon_kv_shelf_bytes", {"place": "file", **SMALL}) is None


def test_drafts_are_counted_by_their_source() -> None:
    metrics = Metrics()
    report = EngineReport(metrics, WHO)
    for drafted, by_model in ((4, 2), (9, 6), (1, 0)):  # the last by an engine that has started over
        report.stepped(Counters(drafted=drafted, accepted=1, model_drafted=by_model, model_accepted=by_model // 2), 0)

    def counted(stage: str, source: str) -> float | None:
        labels = {"stage": stage, "source": source, **SMALL}
        return metrics.registry.get_sample_value("axon_draft_tokens_total", labels)

    assert (counted("drafted", "lookup"), counted("accepted", "lookup")) == (10, 1)
    assert (counted("drafted", "model"), counted("accepted", "model")) == (6, 3)


def test_engines_of_two_models_are_told_apart() -> None:
    metrics = Metrics()
    reports = {model: EngineReport(metrics, WorkerLabels(model)) for model in ("small", "large")}
    for model, num in (("small", 3), ("large", 5), ("small", 4)):
        reports[model].stepped(Counters(preemptions=num, blocks_used=num), 0)
    for model, expected in (("small", 4), ("large", 5)):
        labels = WorkerLabels(model)._asdict()
        assert metrics.registry.get_sample_value("axon_preemptions_total", labels) == expected


def test_slots_are_told_by_tier_and_who_yielded_is_counted() -> None:
    metrics = Metrics()
    report = EngineReport(metrics, WHO)
    report.stepped(Counters(yielded=2, running_by_priority={1: 3, -1: 2}), 0)
    report.stepped(Counters(yielded=3, running_by_priority={1: 1, 0: 4}), 0)
    tiers = {tier: metrics.registry.get_sample_value("axon_slots", {"tier": tier, **SMALL}) for tier in Tier}
    assert tiers == {"priority": 1, "default": 4, "flex": 0}
    assert metrics.registry.get_sample_value("axon_yielded_total", SMALL) == 3


def test_a_worker_that_has_left_is_not_shown_any_more() -> None:
    metrics = Metrics("vllm")
    other = EngineReport(metrics, WHO._replace(version="v2"))
    report = EngineReport(metrics, WHO)
    for each in (other, report):
        each.began(num_slots=4, num_blocks=8)
        each.stepped(Counters(num_running=2, num_waiting=1, blocks_used=8, preemptions=1), 0)
    report.closed()
    report.closed()  # a worker may be closed twice
    shown = [
        sample
        for metric in metrics.registry.collect()
        for sample in metric.samples
        if metric.type == "gauge" and sample.labels.get("version") == "v1"
    ]
    assert shown == []
    assert metrics.registry.get_sample_value("axon_slot_limit", SMALL | {"version": "v2"}) == 4
    assert metrics.registry.get_sample_value("axon_preemptions_total", SMALL) == 1
    waiting = {"model_name": "small", "engine": "0"}
    assert metrics.registry.get_sample_value("vllm:num_requests_waiting", waiting) == 1


def test_a_step_that_changes_nothing_sets_no_gauge(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics, num_set = Metrics(), 0

    def count(_num: float) -> None:
        nonlocal num_set
        num_set += 1

    monkeypatch.setattr(metrics.engine.batch_size.labels(*WHO), "set", count)
    report = EngineReport(metrics, WHO)
    for num_running in (1, 1, 2, 2, 1):
        report.stepped(Counters(num_running=num_running, step_s=0.01), 0)
    assert num_set == 3
    assert metrics.registry.get_sample_value("axon_step_seconds_count", SMALL) == 5


def test_gpus_are_told_one_by_one() -> None:
    metrics = Metrics()
    report = EngineReport(metrics, WHO)
    report.stepped(Counters(gpus=[Gpu(0, 0.5, 1 << 30), Gpu(1, 1.0, 2 << 30)]), 0)
    assert metrics.registry.get_sample_value("axon_gpu_utilization_ratio", {"gpu": "0"}) == 0.5
    assert metrics.registry.get_sample_value("axon_gpu_memory_bytes", {"gpu": "1"}) == 2 << 30


def test_an_engine_that_has_run_nothing_shows_its_slots_and_free_blocks() -> None:
    metrics = Metrics()
    report = EngineReport(metrics, WHO)
    report.began(num_slots=8, num_blocks=64)

    def value(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(name, {**labels, **SMALL})

    assert (value("axon_slot_limit"), value("axon_kv_blocks", state="free"), value("axon_engine_up")) == (8, 64, 1)
    report.died()
    report.began(num_slots=8, num_blocks=64)
    assert (value("axon_engine_up"), value("axon_engine_starts_total")) == (1, 2)


def test_tokens_and_the_prefix_cache_are_counted() -> None:
    metrics = Metrics()
    report = EngineReport(metrics, WHO)
    report.stepped(Counters(batch_tokens=40), 3)
    report.first_token(num_prompt=37, num_cached=32, seconds=0.5, goes_on=True)
    found = [
        metrics.registry.get_sample_value(f"axon_{name}_total", SMALL)
        for name in ("step_tokens", "generated_tokens", "prefix_cache_queries", "prefix_cache_hits")
    ]
    assert found == [40, 3, 37, 32]


def test_a_turn_that_goes_on_and_finds_no_block_has_lost_them() -> None:
    metrics = Metrics()
    report = EngineReport(metrics, WHO)
    for cached, goes_on in ((0, True), (0, False), (16, True)):
        report.first_token(num_prompt=37, num_cached=cached, seconds=0.5, goes_on=goes_on)
    assert metrics.registry.get_sample_value("axon_session_evictions_total", {"reason": "kv"}) == 1


def test_microbatches_poison_and_failovers_are_counted() -> None:
    metrics = Metrics()
    report = EngineReport(metrics, WHO)
    report.embedded([0.1, 0.2])
    report.poisoned()
    report.took_over("engine_died", 1.5)

    def value(name: str, labels: dict[str, str]) -> float | None:
        return metrics.registry.get_sample_value(name, labels)

    assert value("axon_embedding_inputs_total", SMALL) == 2
    assert value("axon_microbatch_inputs_sum", SMALL) == 2
    assert value("axon_embedding_wait_seconds_sum", SMALL) == pytest.approx(0.3)
    assert value("axon_poison_jobs_total", SMALL) == 1
    assert value("axon_failover_seconds_sum", {"cause": "engine_died"}) == 1.5
