"""Exponentiated gradient: it finds the costs, follows them when they change, and no measurement upsets it."""

from math import log
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.engine.schedule.limits.cost_model import CostModel, Vector

XS: list[Vector] = [(1.0, 1.0, 5.0), (1.0, 8.0, 0.5), (1.0, 3.0, 3.0), (1.0, 0.5, 0.5)]


def make(*, gain_up: float = 0.3, gain_down: float = 0.3) -> CostModel:
    return CostModel((1.0, 1.0, 1.0), gain_up=gain_up, gain_down=gain_down)


def cost_of(costs: Vector, x: Vector) -> float:
    return sum(cost * amount for cost, amount in zip(costs, x, strict=True))


def learn(model: CostModel, costs: Vector, times: int) -> None:
    for _ in range(times):
        for x in XS:
            model.update(x, cost_of(costs, x))


@given(st.tuples(*[st.floats(0.2, 5.0)] * 3))
def test_it_finds_the_costs_behind_exact_measurements(costs: Vector) -> None:
    model = make()
    learn(model, costs, times=200)
    for x in XS:
        assert model.predict(x) == pytest.approx(cost_of(costs, x), rel=0.1)


def test_the_first_measurement_sets_the_unit_and_keeps_the_ratios() -> None:
    model = make()
    assert model.update((1.0, 2.0, 1.0), 4e-6) == pytest.approx(1e-6)
    assert model.costs == pytest.approx((1e-6, 1e-6, 1e-6))


def test_it_follows_costs_that_change() -> None:
    model = make()
    learn(model, (1.0, 1.0, 1.0), times=20)
    learn(model, (3.0, 1.0, 0.5), times=100)
    assert model.predict(XS[0]) == pytest.approx(6.5, rel=0.05)


def test_an_outlier_counts_as_twice_what_was_expected() -> None:
    plain, wild = make(), make()
    for model in (plain, wild):
        learn(model, (1.0, 2.0, 3.0), times=40)
    plain.update(XS[0], 2 * plain.predict(XS[0]))
    wild.update(XS[0], 1000.0 * wild.predict(XS[0]))
    assert wild.costs == pytest.approx(plain.costs)


@given(st.lists(st.tuples(st.sampled_from(XS), st.floats(1e-6, 1e3)), max_size=50))
def test_costs_stay_positive_whatever_is_measured(measured: list[tuple[Vector, float]]) -> None:
    model = make(gain_up=0.13, gain_down=0.4)
    for x, y in measured:
        model.update(x, y)
    assert all(0 < cost < float("inf") for cost in model.costs)


def test_what_is_given_beside_is_not_attributed_to_the_costs() -> None:
    model = make()
    for _ in range(100):
        model.update((1.0, 0.0, 0.0), 5.0, given=3.0)
    assert model.costs[0] == pytest.approx(2.0, rel=0.01)


def test_a_measurement_below_what_is_given_leaves_a_positive_cost() -> None:
    model = make()
    model.update((1.0, 0.0, 0.0), 2.0, given=3.0)
    assert model.costs[0] > 0


def test_with_a_smaller_gain_up_it_fits_the_lower_part_of_what_scatters() -> None:
    model, numbers = make(gain_up=0.05, gain_down=0.2), Random(0)
    predictions = []
    for _ in range(2000):
        model.update((1.0, 0.0, 0.0), numbers.lognormvariate(0, 0.2))
        predictions.append(log(model.costs[0]))
    assert -0.2 < sum(predictions[200:]) / len(predictions[200:]) < -0.05
