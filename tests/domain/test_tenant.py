"""What a tenant is entitled to: its own word, its plan's, the server's."""

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.tenant import Limits, Plan, Tenant, Terms, Tier, terms_of

DEFAULTS = Terms(requests_per_minute=600.0, concurrent=64)


def test_the_tenants_own_word_goes_before_its_plans_and_that_before_the_servers() -> None:
    plan = Plan(name="pro", limits=Limits(requests_per_minute=100.0, weight=2.0))
    tenant = Tenant(id="acme", plan="pro", limits=Limits(weight=3.0), place=7)
    terms = terms_of(tenant, plan, DEFAULTS)
    assert (terms.weight, terms.requests_per_minute, terms.concurrent, terms.place) == (3.0, 100.0, 64, 7)


def test_a_limit_that_is_lifted_stays_lifted() -> None:
    plan = Plan(name="pro", limits=Limits(requests_per_minute=100.0))
    tenant = Tenant(id="acme", limits=Limits(requests_per_minute=0.0))
    assert terms_of(tenant, plan, DEFAULTS).requests_per_minute == 0.0


def test_whoever_says_nothing_gets_the_servers() -> None:
    assert terms_of(Tenant(id="acme"), None, DEFAULTS) == DEFAULTS


def test_every_limit_can_be_set_and_has_an_end() -> None:
    assert {each.name for each in fields(Terms)} - {"place"} == {each.name for each in fields(Limits)}


@given(st.sampled_from(Tier), st.sampled_from(Tier))
def test_nobody_gets_more_than_its_highest_tier(asked: Tier, highest: Tier) -> None:
    got = Terms(highest_tier=highest).tier(asked)
    assert got.priority == min(asked.priority, highest.priority)
    assert Tier.of(got.priority) is got


@pytest.mark.parametrize(("models", "allowed"), [((), True), (("small",), True), (("large",), False)])
def test_an_empty_list_of_models_allows_them_all(models: tuple[str, ...], allowed: bool) -> None:
    assert Terms(models=models).allows("small") is allowed
