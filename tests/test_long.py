"""A short run does a tenth of what is long."""

import pytest

from tests import long

CASES = [*range(95)]


def test_a_short_run_has_a_tenth_of_a_corpus() -> None:
    assert len(CASES) - len(long.left_out(CASES, None)) == 10


def test_ten_seeds_see_every_case() -> None:
    seen = {case for seed in range(10) for case in set(CASES) - set(long.left_out(CASES, seed))}
    assert seen == set(CASES)


@pytest.mark.parametrize("seed", [None, 1, 7, 23])
@pytest.mark.parametrize("count", [1, 2, 9])
def test_a_small_corpus_has_one_case_left(count: int, seed: int | None) -> None:
    assert len(long.left_out(CASES[:count], seed)) == count - 1


@pytest.mark.parametrize(("asked", "seconds"), [("1", 600.0), ("", 60.0)])
def test_a_soak_lasts_a_tenth_of_its_time(monkeypatch: pytest.MonkeyPatch, asked: str, seconds: float) -> None:
    monkeypatch.setenv("TEST_LONG", asked)
    assert long.share(600.0) == seconds


def test_a_run_has_some_tests_at_each_place_and_another_run_has_them_at_the_other() -> None:
    def place(test: str, seed: int | None) -> str:
        [at] = {"embedded", "services"} - set(long.left_out(["embedded", "services"], long.drawn(test, seed)))
        return at

    tests = [f"tests/test_it.py::test_{number}" for number in range(20)]
    for seed in (None, 4):
        assert {place(test, seed) for test in tests} == {"embedded", "services"}
    assert all(place(test, 4) != place(test, 5) for test in tests)
