"""A process's own metrics, read back as numbers."""

from prometheus_client import CollectorRegistry, Counter, Histogram

from axon.telemetry.metrics import Metrics
from axon.telemetry.reading import Reading


def test_samples_are_summed_over_the_labels_that_are_not_asked_for() -> None:
    registry = CollectorRegistry()
    asked = Counter("asked", "Asked.", ["route", "tenant"], registry=registry)
    asked.labels("chat", "acme").inc(2)
    asked.labels("models", "acme").inc()
    asked.labels("chat", "globex").inc(5)
    reading = Reading(registry, ["asked_total"])
    assert reading.total("asked_total") == 8
    assert reading.by("asked_total", "tenant") == {"acme": 3, "globex": 5}
    assert reading.by("asked_total", "model") == {"": 8}


def test_a_histogram_is_read_bucket_by_bucket_whatever_its_labels() -> None:
    registry = CollectorRegistry()
    took = Histogram("took", "Took.", ["model"], buckets=(0.1, 1.0), registry=registry)
    for model, seconds in (("a", 0.05), ("a", 0.5), ("b", 0.5), ("b", 7.0)):
        took.labels(model).observe(seconds)
    assert Reading(registry, ["took"]).buckets("took") == ((0.1, 1.0), (1, 2, 1))


def test_a_metric_without_a_sample_or_that_is_not_there_is_nothing() -> None:
    reading = Reading(Metrics().registry, ["axon_rejected_total", "nothing"])
    assert reading.total("axon_rejected_total") == 0
    assert (reading.total("nothing"), reading.by("nothing", "x")) == (0, {})
    assert reading.buckets("nothing") == ((), ())


def test_what_was_not_asked_for_is_not_read() -> None:
    metrics = Metrics()
    metrics.requests.answered.labels("chat", "200", "acme").inc()
    assert Reading(metrics.registry, ["axon_tokens_total"]).total("axon_requests_total") == 0
