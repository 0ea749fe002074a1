"""What ``model:adapter`` means at a gateway, and to whom."""

from dataclasses import replace

import pytest

from axon.domain.registry.adapter import Adapter, AdapterFiles
from axon.domain.registry.deployment import Alias
from axon.errors import NotFound
from axon.gateway.offers.offers import Offers
from axon.runtime.clock import FakeClock
from tests.domain.registry.builders import deployment, snapshot
from tests.gateway.offers.builders import FakeView, make_announced, make_offers, said

FILES = (AdapterFiles(digest="1" * 64, source="/adapters/sql"),)
SQL = Adapter(model="small", label="sql", files=FILES, created=0.0)
OWN = Adapter(model="small", label="own", tenant="acme", files=FILES, created=0.0)
OTHER = Adapter(model="large", label="other", files=FILES, created=0.0)


def everything(name: str) -> bool:
    return True


def offers_with_adapters(clock: FakeClock) -> Offers:
    found = replace(
        snapshot(deployment(), deployment(name="second")),
        aliases={"fast": Alias(name="fast", deployment="small", created=1.0)},
        adapters={each.id: each for each in (SQL, OWN, OTHER)},
    )
    large = make_announced("large", clock, served=replace(said("a").deployment, name="large"))
    return make_offers(clock, large, view=FakeView(found))


def test_a_deployment_an_alias_and_a_model_of_the_settings_have_adapters(clock: FakeClock) -> None:
    offers = offers_with_adapters(clock)
    for name, adapter in (("small:sql", SQL), ("fast:sql", SQL), ("second:sql", SQL), ("large:other", OTHER)):
        wanted = offers.find(name, everything, tenant="any")
        assert wanted.adapter == adapter
        assert wanted.pin_name(wanted.offer.name) == f"{wanted.offer.name}:{adapter.label}"
    assert offers.find("small", everything).adapter is None


@pytest.mark.parametrize("name", ["small:own", "small:none", "small:", "large:sql", "small@v1:sql", "none:sql", ":sql"])
def test_what_a_tenant_may_not_know_of_is_unknown(clock: FakeClock, name: str) -> None:
    with pytest.raises(NotFound) as caught:
        offers_with_adapters(clock).find(name, everything, tenant="other")
    assert caught.value.code == "model_not_found"


def test_a_tenants_own_adapter_is_its_own_alone(clock: FakeClock) -> None:
    offers = offers_with_adapters(clock)
    assert offers.find("small:own", everything, tenant="acme").adapter == OWN
    with pytest.raises(NotFound):
        offers.find("small:own", lambda name: name != "small", tenant="acme")
    [small] = [each for each in offers.listed(everything) if each.served.name == "small"]
    assert [each.id for each in offers.adapters(small, "acme")] == ["small:sql", "small:own"]
    assert [each.id for each in offers.adapters(small, "other")] == ["small:sql"]
