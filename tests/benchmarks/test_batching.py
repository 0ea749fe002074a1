import pytest
from benchmarks.measures.batching import LENGTHS, Lengths, bound


def test_lengths_are_clipped_and_the_same_for_the_same_seed() -> None:
    drawn = LENGTHS.draw(0, 2000)
    assert drawn == LENGTHS.draw(0, 2000)
    assert min(drawn) >= 8
    assert max(drawn) == 1024
    assert 80 <= sorted(drawn)[1000] <= 100, "the median of a lognormal is e to the mu: 90"


def test_equal_lengths_leave_nothing_to_gain() -> None:
    assert bound(Lengths(sigma=0.0).draw(0, 64), 16) == 1.0


def test_the_bound_is_the_mean_of_the_batches_longest_over_the_mean_length() -> None:
    assert bound([1, 3, 2, 10], 2) == pytest.approx(((3 + 10) / 2) / 4)


def test_a_last_batch_that_is_not_full_counts_as_one() -> None:
    assert bound([2, 4, 6], 2) == pytest.approx(((4 + 6) / 2) / 4)
