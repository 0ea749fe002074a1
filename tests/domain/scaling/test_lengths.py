"""Lengths of answers: by route and tenant, what is left of one, and bounds."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.scaling.lengths import Lengths
from tests.domain.scaling.strategies import hostile


def test_each_route_and_tenant_has_its_own_lengths() -> None:
    lengths = Lengths()
    for _ in range(200):
        lengths.observe(("chat", "acme"), 100)
        lengths.observe(("chat", "bulk"), 2000)
    assert lengths.mean(("chat", "acme")) == pytest.approx(100, rel=0.5)
    assert lengths.mean(("chat", "bulk")) == pytest.approx(2000, rel=0.1)
    assert lengths.mean(("chat", "new")) == pytest.approx(1050, rel=0.1)


def test_what_is_left_of_a_heavy_tailed_answer_grows_with_what_it_has() -> None:
    generator, lengths = random.Random(1), Lengths()
    for _ in range(4000):
        lengths.observe("chat", 50 * generator.paretovariate(1.5))
    assert lengths.remaining("chat", 1000) > 2 * lengths.remaining("chat", 100)


def test_the_quantile_is_right_to_a_fifth() -> None:
    generator, lengths = random.Random(1), Lengths()
    for _ in range(1500):
        lengths.observe("chat", generator.uniform(0, 1000))
    assert lengths.quantile("chat", 0.5) == pytest.approx(500, rel=0.2)


@given(st.lists(st.tuples(st.integers(0, 50), hostile, hostile), max_size=60), hostile)
def test_lengths_are_bounded_and_no_number_makes_them_fail(seen: list[tuple[int, float, float]], so_far: float) -> None:
    lengths = Lengths(max_keys=8)
    for key, length, weight in seen:
        lengths.observe(key, length, weight)
    assert len(lengths) <= 8
    for key in range(50):
        assert 1.0 <= lengths.remaining(key, so_far) <= 1e12
        assert lengths.quantile(key, so_far) >= 0
