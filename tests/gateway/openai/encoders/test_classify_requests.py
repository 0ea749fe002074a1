"""The body of a classification request, and what is said of each input."""

import json

import pytest

from axon.domain.model.classes import Activation, Classes
from axon.domain.model.embeds import Embeds
from axon.errors import InvalidInput, Unsupported
from axon.gateway.http.body import parse
from axon.gateway.openai.encoders.classify_requests import ClassifyRequest, class_body
from axon.gateway.vector_directives import CLASSIFY

MOODS = Classes(labels=("sad", "glad"), activation=Activation.SOFTMAX)


def classify(**fields: object) -> ClassifyRequest:
    return parse(ClassifyRequest, json.dumps({"model": "m", **fields}).encode(), CLASSIFY.refused, CLASSIFY.notes)


@pytest.mark.parametrize(
    ("given", "inputs"),
    [("a", ["a"]), (["a", "b"], ["a", "b"]), ([1, 2], [[1, 2]]), ([[1], [2, 3]], [[1], [2, 3]])],
)
def test_one_input_and_several_are_taken_as_text_and_as_token_ids(given: object, inputs: list[object]) -> None:
    ask = classify(input=given)
    ask.check()
    assert ask.texts(Embeds(dimensions=2, classes=MOODS)) == inputs


@pytest.mark.parametrize("given", ["", [], ["a", ""], [[]], ["a"] * 2049])
def test_empty_inputs_and_too_many_are_refused(given: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        classify(input=given).check()
    assert caught.value.param == "input"


def test_what_belongs_to_other_routes_is_refused_by_name() -> None:
    with pytest.raises(Unsupported) as caught:
        classify(input="a", messages=[])
    assert caught.value.param == "messages"


def test_an_answer_names_the_likeliest_class_and_has_the_scores_of_all() -> None:
    found = class_body(3, MOODS, [1.0, 2.0], use_activation=True)
    assert (found["index"], found["label"], found["num_classes"]) == (3, "glad", 2)
    assert found["probs"] == pytest.approx([0.2689414, 0.7310586])
    assert class_body(0, MOODS, [1.0, 2.0], use_activation=False)["probs"] == [1.0, 2.0]
    assert class_body(0, MOODS, [2.0, 2.0], use_activation=True)["label"] == "sad"
