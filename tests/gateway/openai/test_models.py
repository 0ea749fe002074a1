"""Models as a tenant sees them: one that it may not ask is not there."""

from types import SimpleNamespace
from typing import Any

import pytest

from axon.domain.tenants.key import HOLDER, Scope
from axon.domain.tenants.tenant import Terms
from axon.errors import Forbidden, NotFound
from axon.gateway.http.auth import Identity
from axon.gateway.openai.models import index
from axon.gateway.turn.context import find_model
from axon.runtime.clock import FakeClock
from tests.contracts.builders import make_presence
from tests.domain.registry.builders import deployment, snapshot
from tests.gateway.offers.builders import FakeView, make_announced, make_offers


def request(*models: str, view: FakeView | None = None, scopes: frozenset[Scope] = HOLDER) -> Any:
    """Of a tenant that may ask these models, or all; the server has one that is called small."""
    clock = FakeClock()
    small = make_announced("small", clock, served=make_presence().deployment)
    gateway = SimpleNamespace(offers=make_offers(clock, small, view=view))
    return SimpleNamespace(
        app=SimpleNamespace(state=SimpleNamespace(gateway=gateway)),
        scope={"axon.identity": Identity("key", "acme", scopes, terms=Terms(models=models))},
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


def test_one_version_is_asked_for_with_a_key_that_may_and_names_are_for_every_key() -> None:
    view = FakeView(snapshot(deployment()))
    assert find_model(request(view=view), "small").version == ""
    with pytest.raises(Forbidden, match=r"needs the scope 'versions', and has 'inference' and 'read'"):
        find_model(request(view=view), "small@v2")
    assert find_model(request(view=view, scopes=HOLDER | {Scope.VERSIONS}), "small@v2").version == "small@v2"
    with pytest.raises(NotFound):
        find_model(request("large", view=view), "small@v2")
