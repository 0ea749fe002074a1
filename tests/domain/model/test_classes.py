"""From logits to the scores of classes."""

import math

from hypothesis import given
from hypothesis import strategies as st

from axon.domain.model.classes import Activation, Classes

logits = st.lists(st.floats(-1e30, 1e30), min_size=1, max_size=8)


def classes(activation: Activation, count: int = 3) -> Classes:
    return Classes(labels=tuple(f"LABEL_{index}" for index in range(count)), activation=activation)


@given(logits)
def test_softmax_gives_probabilities_that_sum_to_one_in_the_order_of_the_logits(given: list[float]) -> None:
    found = classes(Activation.SOFTMAX, len(given)).scores(given)
    assert all(0 <= each <= 1 for each in found)
    assert math.isclose(sum(found), 1)
    assert found[max(range(len(given)), key=lambda index: given[index])] == max(found)


@given(logits)
def test_sigmoid_scores_each_class_by_itself(given: list[float]) -> None:
    found = classes(Activation.SIGMOID, len(given)).scores(given)
    assert all(0 <= each <= 1 for each in found)
    assert found == [classes(Activation.SIGMOID, 1).scores([each])[0] for each in given]
    assert all((score >= 0.5) == (logit >= 0) for score, logit in zip(found, given, strict=True) if abs(logit) > 1e-9)


def test_known_numbers() -> None:
    assert classes(Activation.SIGMOID, 1).scores([0.0]) == [0.5]
    assert math.isclose(classes(Activation.SIGMOID, 1).scores([-2.0])[0], 1 / (1 + math.e**2))
    assert classes(Activation.SOFTMAX, 2).scores([3.0, 3.0]) == [0.5, 0.5]
    assert classes(Activation.NONE, 2).scores([3.0, -4.0]) == [3.0, -4.0]


def test_one_class_makes_a_cross_encoder() -> None:
    assert [classes(Activation.NONE, count).is_one for count in (1, 2)] == [True, False]
