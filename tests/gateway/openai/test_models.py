"""Models as a tenant sees them: one that it may not ask is not there."""

from types import SimpleNamespace
from typing import Any

import pytest

from axon.domain.tenant import Terms
from axon.errors import NotFound
from axon.gateway.http.auth import Identity
from axon.gateway.openai.models import index
from axon.gateway.turn.context import find_model
from axon.runtime.clock import FakeClock
from tests.contracts.builders import make_presence
from tests.gateway.offers.builders import make_announced, make_offers


def request(*models: str) -> Any:
    """Of a tenant that may ask these models, or all; the server has one that is called small."""
    clock = FakeClock()
    small = make_announced("small", clock, served=make_presence().deployment)
    gateway = SimpleNamespace(offers=make_offers(clock, small))
    return SimpleNamespace(
        app=SimpleNamespace(state=SimpleNamespace(gateway=gateway)),
        scope={"axon.identity": Identity("key", "acme", terms=Terms(models=models))},
    )


@pytest.mark.parametrize("models", [(), ("small",), ("large", "small")])
async def test_a_model_that_may_be_asked_is_found_and_listed(models: tuple[str, ...]) -> None:
    assert find_model(request(*models), "small").offer.name == "small"
    assert [each["id"] for each in (await index(request(*models)))["data"]] == ["small"]


async def test_a_model_that_may_not_be_asked_is_answered_like_one_that_does_not_exist() -> None:
    problems = []
    for model in ("small", "other"):
        with pytest.raises(NotFound) as refused:
            find_model(request("large"), model)
        problems.append((refused.value.message.replace(model, "…"), refused.value.code, refused.value.param))
    assert problems[0] == problems[1]
    assert (await index(request("large")))["data"] == []
