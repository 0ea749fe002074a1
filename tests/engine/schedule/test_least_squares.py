"""Recursive least squares: it finds the weights, follows them when they change, and forgets only what it measures."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.engine.schedule.least_squares import RecursiveLeastSquares, Vector, dot

NO_OUTLIERS = float("inf")


def make(size: int = 3, *, forgetting_factor: float = 0.97) -> RecursiveLeastSquares:
    return RecursiveLeastSquares(size, forgetting_factor=forgetting_factor, first_variance=100.0)


def learn(estimator: RecursiveLeastSquares, weights: Vector, xs: list[Vector], times: int = 1) -> None:
    for _ in range(times):
        for x in xs:
            estimator.update(x, dot(weights, x), outlier_ratio=NO_OUTLIERS)


XS: list[Vector] = [(1.0, 0.0, 0.5), (0.3, 1.0, 0.0), (0.0, 0.4, 1.0), (1.0, 1.0, 1.0)]


@given(st.tuples(*[st.floats(0.1, 10.0)] * 3))
def test_it_finds_the_weights_behind_exact_measurements(weights: Vector) -> None:
    estimator = make()
    learn(estimator, weights, XS, times=40)
    assert estimator.weights == pytest.approx(weights, abs=0.01)


def test_it_predicts_nothing_before_the_first_measurement_and_nearly_that_one_after_it() -> None:
    estimator = make()
    assert estimator.predict((1.0, 2.0, 3.0)) == 0.0
    estimator.update((1.0, 2.0, 3.0), 5.0, outlier_ratio=NO_OUTLIERS)
    assert estimator.predict((1.0, 2.0, 3.0)) == pytest.approx(5.0, rel=1e-3)


def test_it_follows_weights_that_change() -> None:
    estimator = make()
    learn(estimator, (1.0, 1.0, 1.0), XS, times=40)
    learn(estimator, (2.0, 1.0, 3.0), XS, times=400)
    assert estimator.weights == pytest.approx((2.0, 1.0, 3.0), abs=0.02)


def test_what_is_not_measured_any_more_is_not_forgotten() -> None:
    """With plain exponential forgetting the covariance of the other directions would grow without bound."""
    estimator = make()
    learn(estimator, (1.0, 2.0, 3.0), XS, times=40)
    learn(estimator, (1.0, 2.0, 3.0), [(1.0, 0.0, 0.0)], times=5000)
    estimator.update((0.0, 1.0, 0.0), 20.0, outlier_ratio=NO_OUTLIERS)
    assert estimator.weights[1] < 4.0, "one strange measurement counts as it would have before"


def test_an_outlier_counts_as_a_multiple_of_the_prediction_once_such_measurements_are_known() -> None:
    plain, robust = make(), make()
    for estimator in (plain, robust):
        learn(estimator, (1.0, 2.0, 3.0), XS, times=40)
    plain.update(XS[0], 5.0, outlier_ratio=NO_OUTLIERS)
    robust.update(XS[0], 1000.0, outlier_ratio=2.0)
    assert robust.weights == pytest.approx(plain.weights, rel=1e-3)


def test_the_first_measurements_are_never_taken_for_outliers() -> None:
    estimator = make()
    estimator.update((1.0, 0.0, 0.0), 0.001, outlier_ratio=2.0)
    estimator.update((0.0, 1.0, 0.0), 1000.0, outlier_ratio=2.0)
    assert estimator.weights[1] == pytest.approx(1000.0, rel=0.02)
