"""A line that would be written several times a second is written once, then rarely, with a count."""

from axon.telemetry.sparse import Sparse


def test_the_first_passes_and_then_one_in_ten_seconds_with_the_number_held_back() -> None:
    sparse = Sparse(every_s=10.0)
    passed = {tenth: sparse.pass_at(tenth / 10) for tenth in range(0, 250, 2)}
    assert {at: count for at, count in passed.items() if count is not None} == {0: 0, 100: 49, 200: 49}


def test_a_failure_after_it_went_well_is_news() -> None:
    sparse = Sparse(every_s=10.0)
    assert sparse.pass_at(5.0) == 0
    assert sparse.pass_at(5.2) is None
    sparse.reset()
    assert sparse.pass_at(5.4) == 0
