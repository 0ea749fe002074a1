"""A reader's stopwatch: the first token once, the gaps between tokens shared by those that came together."""

from axon.gateway.turn.latency import Latency
from axon.telemetry.metrics import Metrics
from tests.contracts.builders import make_job

JOB = make_job()


def seen(metrics: Metrics) -> tuple[float, float, float, float]:
    """The number and sum of first tokens, and of gaps."""
    found = {
        sample.name: sample.value
        for each in (metrics.turns.time_to_first_token, metrics.turns.inter_token_latency)
        for family in each.collect()
        for sample in family.samples
    }
    firsts = next(name for name in found if name.endswith("_count") and "first" in name).removesuffix("_count")
    gaps = next(name for name in found if name.endswith("_count") and "inter" in name).removesuffix("_count")
    return found[f"{firsts}_count"], found[f"{firsts}_sum"], found[f"{gaps}_count"], found[f"{gaps}_sum"]


def test_the_first_tokens_are_timed_from_the_request_and_the_others_from_those_before() -> None:
    metrics = Metrics()
    latency = Latency(metrics, JOB, 10.0)
    latency.saw(1, 12.0)
    latency.saw(4, 14.0)
    assert seen(metrics) == (1, 2.0, 1, 0.5)


def test_a_reader_who_came_back_has_no_first_token() -> None:
    metrics = Metrics()
    latency = Latency(metrics, JOB, None)
    latency.saw(3, 12.0)
    assert seen(metrics) == (0, 0.0, 0, 0.0)
    latency.saw(1, 13.0)
    assert seen(metrics) == (0, 0.0, 1, 1.0)
