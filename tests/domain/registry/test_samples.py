from hypothesis import given
from hypothesis import strategies as st

from axon.domain.registry.samples import (
    GROWTH,
    Observed,
    Samples,
    bucket_of_latency,
    buckets_of_factor,
    decode,
    encode,
    latency_of,
    median_of,
)

counts = st.integers(0, 1000)
histograms = st.dictionaries(st.integers(0, 320), st.integers(1, 50), max_size=8)
samples = st.builds(Samples, begun=counts, errors=counts, refused=counts, mute=counts, ttft=histograms, itl=histograms)
observed = st.builds(Observed, old=samples, new=samples)


@given(st.floats(0, 1e5))
def test_a_latency_is_in_its_bucket(seconds: float) -> None:
    bucket = bucket_of_latency(seconds)
    assert 0 <= bucket <= 320
    if 1e-4 < seconds < 5000:
        assert latency_of(bucket) <= seconds * (1 + 1e-9)
        assert seconds <= latency_of(bucket + 1) * (1 + 1e-9)


def test_a_factor_is_rounded_up_to_whole_buckets() -> None:
    assert [buckets_of_factor(factor) for factor in (1.0, 1.01, GROWTH, 1.25, 1.26)] == [0, 1, 1, 4, 5]


@given(observed, observed)
def test_what_was_added_since_is_what_was_added(first: Observed, second: Observed) -> None:
    assert (first + second).since(first) == second


@given(observed)
def test_samples_survive_the_way_to_control(some: Observed) -> None:
    assert decode(encode(some)) == some


def test_the_median_is_within_a_bucket_of_the_right_one() -> None:
    values = [0.1, 0.2, 0.4, 0.8, 1.6]
    histogram: dict[int, int] = {}
    for value in values:
        histogram[bucket_of_latency(value)] = histogram.get(bucket_of_latency(value), 0) + 1
    median = median_of(histogram)
    assert median is not None
    assert 0.4 / GROWTH <= median <= 0.4 * GROWTH
    assert median_of({}) is None
