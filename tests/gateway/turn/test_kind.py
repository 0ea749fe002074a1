"""Which requests a model can answer."""

import pytest

from axon.domain.model.classes import Activation, Classes
from axon.domain.model.embeds import Embeds
from axon.domain.model.served_version import ServedVersion
from axon.errors import Unsupported
from axon.gateway.turn.kind import Kind, check_kind, kinds_of


def served(embeds: Embeds | None) -> ServedVersion:
    return ServedVersion(name="m", version="v", max_model_len=8, created=0.0, embeds=embeds)


def classes(count: int) -> Embeds:
    labels = tuple(map(str, range(count)))
    return Embeds(dimensions=count, classes=Classes(labels=labels, activation=Activation.SOFTMAX))


@pytest.mark.parametrize(
    ("embeds", "kinds"),
    [
        (None, {Kind.TEXT}),
        (Embeds(dimensions=8), {Kind.VECTORS, Kind.SCORES}),
        (classes(1), {Kind.CLASSES, Kind.SCORES}),
        (classes(3), {Kind.CLASSES}),
    ],
)
def test_a_model_answers_what_it_can_and_says_what_it_is_otherwise(embeds: Embeds | None, kinds: set[Kind]) -> None:
    model = served(embeds)
    assert kinds_of(model) == kinds
    for kind in Kind:
        if kind in kinds:
            check_kind(model, kind)
            continue
        with pytest.raises(Unsupported, match="The model 'm' ") as caught:
            check_kind(model, kind)
        assert (caught.value.code, caught.value.param) == ("model_not_supported", "model")
