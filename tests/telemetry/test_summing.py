"""Metrics of several processes are shown as those of one server."""

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info
from prometheus_client.exposition import generate_latest

from axon.telemetry.metrics import Metrics
from axon.telemetry.summing import Families, Family, SummedMetrics, cumulative, families_of, summed


def process(requests: int = 0, workers: int = 0, running: int = 0, slow_s: float | None = None) -> CollectorRegistry:
    registry = CollectorRegistry()
    Counter("axon_requests_total", "Requests.", ["route"], registry=registry).labels("/v1/models").inc(requests)
    Gauge("axon_workers", "Workers.", registry=registry).set(workers)
    Gauge("axon_requests_running", "Running.", registry=registry).set(running)
    Gauge("process_start_time_seconds", "Start.", registry=registry).set(1000 + requests)
    Info("axon_build", "Build.", registry=registry).info({"version": "1"})
    lag = Histogram("axon_lag_seconds", "Lag.", buckets=(1.0,), registry=registry)
    if slow_s is not None:
        lag.observe(slow_s)
    return registry


def value(families: Families, sample: str, **labels: str) -> float:
    found = [
        each.value
        for family in families
        for each in family.samples
        if each.name == sample and labels.items() <= dict(each.labels).items()
    ]
    assert len(found) == 1, f"{sample}: {found}"
    return found[0]


@pytest.fixture
def both() -> tuple[Family, ...]:
    one, other = process(3, workers=2, running=1, slow_s=0.5), process(4, workers=2, running=5, slow_s=2.0)
    return summed([families_of(one), families_of(other)])


def test_counters_and_histograms_are_added_up_label_by_label(both: tuple[Family, ...]) -> None:
    assert value(both, "axon_requests_total", route="/v1/models") == 7
    assert value(both, "axon_lag_seconds_count") == 2
    assert value(both, "axon_lag_seconds_bucket", le="1.0") == 1
    assert value(both, "axon_lag_seconds_sum") == 2.5


def test_a_gauge_of_what_each_has_is_added_up_and_one_of_what_all_see_is_not(both: tuple[Family, ...]) -> None:
    assert value(both, "axon_requests_running") == 6
    assert value(both, "axon_workers") == 2
    assert value(both, "axon_build_info") == 1


def test_times_of_a_start_are_the_earliest(both: tuple[Family, ...]) -> None:
    assert value(both, "process_start_time_seconds") == 1003
    created = [each.value for family in both for each in family.samples if each.name == "axon_requests_created"]
    assert len(created) == 1


def test_what_an_ended_process_had_counted_stays_and_what_it_had_does_not() -> None:
    past = cumulative(families_of(process(3, workers=2, running=1)))
    now = summed([past, families_of(process(4, workers=2, running=5))])
    assert value(now, "axon_requests_total") == 7
    assert value(now, "axon_requests_running") == 5


def test_a_scrape_reads_the_others_each_time_and_is_valid_text() -> None:
    own, others = Metrics(), [Metrics()]
    own.requests.answered.labels("/v1/models", "200", "").inc()
    shown = CollectorRegistry(auto_describe=False)
    shown.register(SummedMetrics(own.registry, lambda: [families_of(each.registry) for each in others]))
    assert 'axon_requests_total{outcome="200",route="/v1/models",tenant=""} 1.0' in generate_latest(shown).decode()
    others[0].requests.answered.labels("/v1/models", "200", "").inc(2)
    text = generate_latest(shown).decode()
    assert 'axon_requests_total{outcome="200",route="/v1/models",tenant=""} 3.0' in text
    assert text.count("# TYPE axon_requests_total counter") == 1
    assert "axon_build_info" in text
