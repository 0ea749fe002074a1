"""Durations by bucket: each is found again within its bucket, and what grew between two readings is what was added."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.histogram import BOUNDS, bucket_of, grown, quantile, summed, trimmed

counts = st.lists(st.integers(0, 50), max_size=len(BOUNDS) + 1)
durations = st.lists(st.floats(0.0, 300.0), min_size=1, max_size=40)


def counted(values: list[float]) -> list[int]:
    found = [0] * (len(BOUNDS) + 1)
    for value in values:
        found[bucket_of(value)] += 1
    return found


def test_the_bounds_are_those_of_every_release() -> None:
    assert (len(BOUNDS), BOUNDS[0], BOUNDS[4], BOUNDS[-1]) == (73, 0.001, 0.002, 0.001 * 2**18)
    assert all(low < high for low, high in pairwise(BOUNDS))


@pytest.mark.parametrize(
    ("counts", "share", "found"),
    [
        ((), 0.5, None),
        ((0, 0), 0.5, None),
        ((10,), 0.5, 0.5),
        ((0, 10), 1.0, 2.0),
        ((0, 10), 0.5, 1.5),
        ((5, 5), 0.5, 1.0),
        ((99, 0, 1), 0.99, 1.0),
        ((0, 0, 0, 7), 0.5, 4.0),
    ],
)
def test_a_quantile_lies_evenly_within_its_bucket(counts: tuple[int, ...], share: float, found: float | None) -> None:
    assert quantile(counts, share, (1.0, 2.0, 4.0)) == found


@given(durations, st.floats(0.0, 1.0))
def test_a_quantile_is_in_the_bucket_of_the_duration_it_stands_for(values: list[float], share: float) -> None:
    found = quantile(counted(values), share)
    exact = sorted(values)[max(0, -int(-(share * len(values)) // 1) - 1)]
    assert found is not None
    assert abs(bucket_of(found) - bucket_of(exact)) <= 1 or found == BOUNDS[-1]


@given(counts, st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_a_larger_share_has_no_smaller_duration(of: list[int], one: float, other: float) -> None:
    low, high = quantile(of, min(one, other)), quantile(of, max(one, other))
    assert (low is None) == (high is None) == (not any(of))
    assert low is None or high is None or low <= high


@given(counts, counts)
def test_what_grew_between_two_readings_is_what_was_counted_between_them(before: list[int], new: list[int]) -> None:
    assert grown(trimmed(before), trimmed(summed(before, new))) == trimmed(new)


@given(counts, counts)
def test_counts_that_began_anew_are_all_new(before: list[int], after: list[int]) -> None:
    found = grown(before, after)
    assert all(each >= 0 for each in found)
    shrank = any(old > (after[index] if index < len(after) else 0) for index, old in enumerate(before))
    assert not shrank or found == trimmed(after)
