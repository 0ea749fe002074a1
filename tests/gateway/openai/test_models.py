"""Models as a tenant sees them: one that it may not ask is not there."""

from types import SimpleNamespace
from typing import Any

import pytest

from axon.domain.tenant import Terms
from axon.errors import NotFound
from axon.gateway.http.auth import Identity
from axon.gateway.offers import Offer, Offers
from axon.gateway.openai.models import index
from axon.gateway.turn.context import find_offer
from axon.sessions.prompt import Prompts
from axon.text.tokenizer import load_tokenizer
from tests.contracts.builders import make_presence


def request(*models: str) -> Any:
    """Of a tenant that may ask these models, or all; the server has one that is called small."""
    fleet: Any = SimpleNamespace(name="small", deployment=make_presence().deployment, known=True)
    gateway = SimpleNamespace(offers=Offers([Offer(fleet, Prompts(load_tokenizer(None), None))]))
    return SimpleNamespace(
        app=SimpleNamespace(state=SimpleNamespace(gateway=gateway)),
        scope={"axon.identity": Identity("key", "acme", terms=Terms(models=models))},
    )


@pytest.mark.parametrize("models", [(), ("small",), ("large", "small")])
async def test_a_model_that_may_be_asked_is_found_and_listed(models: tuple[str, ...]) -> None:
    assert find_offer(request(*models), "small").name == "small"
    assert [each["id"] for each in (await index(request(*models)))["data"]] == ["small"]


async def test_a_model_that_may_not_be_asked_is_answered_like_one_that_does_not_exist() -> None:
    problems = []
    for model in ("small", "other"):
        with pytest.raises(NotFound) as refused:
            find_offer(request("large"), model)
        problems.append((refused.value.message.replace(model, "…"), refused.value.code, refused.value.param))
    assert problems[0] == problems[1]
    assert (await index(request("large")))["data"] == []
