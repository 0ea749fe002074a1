"""What a request's ``model`` names, by what its key may do."""

from types import SimpleNamespace

import pytest
from starlette.requests import Request

from axon.domain.tenants.key import Scope
from axon.domain.tenants.tenant import Terms
from axon.errors import Forbidden, NotFound
from axon.gateway.turn.context import find_model
from axon.runtime.clock import FakeClock
from tests.domain.registry.builders import deployment, snapshot
from tests.gateway.offers.builders import FakeView, make_announced, make_offers


def request_of(*scopes: Scope, models: tuple[str, ...] = ()) -> Request:
    clock = FakeClock()
    offers = make_offers(clock, make_announced("own", clock), view=FakeView(snapshot(deployment())))
    identity = SimpleNamespace(tenant="acme", scopes=frozenset(scopes), terms=Terms(models=models))
    app = SimpleNamespace(state=SimpleNamespace(gateway=SimpleNamespace(offers=offers)))
    return Request({"type": "http", "headers": [], "axon.identity": identity, "app": app})


@pytest.mark.parametrize("label", ["v2", "v99", ""])
@pytest.mark.parametrize("base", ["small", "own"])
def test_a_key_without_the_scope_does_not_learn_which_versions_there_are(base: str, label: str) -> None:
    with pytest.raises(Forbidden):
        find_model(request_of(Scope.INFERENCE), f"{base}@{label}")


def test_a_key_with_the_scope_names_a_version_and_hears_of_one_that_is_not_there() -> None:
    allowed = request_of(Scope.INFERENCE, Scope.VERSIONS)
    assert find_model(allowed, "small@v2").version == "small@v2"
    with pytest.raises(NotFound):
        find_model(allowed, "small@v99")


@pytest.mark.parametrize("scopes", [(Scope.INFERENCE,), (Scope.INFERENCE, Scope.VERSIONS)])
@pytest.mark.parametrize("model", ["small@v2", "small@v99", "small", "nothing@v1"])
def test_a_model_that_the_tenant_may_not_use_does_not_exist_for_any_key(scopes: tuple[Scope, ...], model: str) -> None:
    with pytest.raises(NotFound):
        find_model(request_of(*scopes, models=("own",)), model)
