"""What a tenant is entitled to: its own word, its plan's, the server's."""

import math
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.tenants.key import new_key_text
from axon.domain.tenants.tenant import (
    Limits,
    Plan,
    Tenant,
    Terms,
    Tier,
    check_id,
    check_limits,
    check_name,
    terms_of,
)
from axon.errors import InvalidInput

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


def test_what_a_server_holds_without_a_word_may_also_be_said() -> None:
    terms = Terms()
    check_limits(Limits(**{each.name: getattr(terms, each.name) for each in fields(Limits)}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name in ("requests_per_minute", "tokens_per_minute") for value in (-1.0, 1e300, math.nan)),
        *((name, -1) for name in ("concurrent", "queued", "tokens_per_day", "tokens_per_month")),
        *(("weight", value) for value in (0.0, -1.0, 1001.0, math.inf, math.nan)),
        *(("kv_share", value) for value in (0.0, 1.1, math.nan)),
        *(("reserved", value) for value in (-0.1, 1.1, math.nan)),
        *(("models", value) for value in (("",), ("a\nb",), ("x" * 257,), tuple("x" * 101))),
        *(("pool", value) for value in ("a b", "-a", "x" * 65)),
    ],
)
def test_a_limit_that_makes_no_sense_is_named(name: str, value: object) -> None:
    with pytest.raises(InvalidInput) as refusal:
        check_limits(Limits(**{name: value}))  # type: ignore[arg-type]
    assert refusal.value.param == f"limits.{name}"


@pytest.mark.parametrize("name", ["a", "acme", "Acme.Inc_2-x", "_x", "0", "x" * 64])
def test_an_id_can_be_written_anywhere(name: str) -> None:
    check_id(name)


@pytest.mark.parametrize("name", ["", ".", "..", "-a", "a b", "a/b", "a\n", "größer", "x" * 65, "a%2f"])
def test_what_could_not_be_written_anywhere_is_no_id(name: str) -> None:
    with pytest.raises(InvalidInput):
        check_id(name)


@pytest.mark.parametrize(("name", "good"), [("", True), ("Größer & Co. 🦀", True), ("a\nb", False), ("x" * 257, False)])
def test_a_name_is_what_a_list_can_show(name: str, good: bool) -> None:
    if good:
        check_name(name)
    else:
        with pytest.raises(InvalidInput):
            check_name(name)


@pytest.mark.parametrize("name", ["requests_per_minute", "tokens_per_minute"])
def test_a_bucket_that_would_never_hold_a_whole_one_is_refused(name: str) -> None:
    rates: list[dict[str, Any]] = [{name: rate} for rate in (0.0, 1.0, 0.5)]
    check_limits(Limits(**rates[0]))
    check_limits(Limits(**rates[1]))
    with pytest.raises(InvalidInput, match=name):
        check_limits(Limits(**rates[2]))


@pytest.mark.parametrize(
    ("pool", "fits"), [("gold", True), ("", True), ("Gold", False), ("eu.west", False), ("x_", False)]
)
def test_a_tenants_pool_has_a_name_that_a_worker_can_have(pool: str, fits: bool) -> None:
    if fits:
        check_limits(Limits(pool=pool))
        return
    with pytest.raises(InvalidInput, match="pool"):
        check_limits(Limits(pool=pool))


@given(before=st.text("ab_-", max_size=5), after=st.text("ab_-", max_size=5), cut=st.integers(13, 61))
def test_no_name_has_more_of_a_key_in_it_than_its_id(before: str, after: str, cut: int) -> None:
    _, key = new_key_text()
    for check in (check_id, check_name):
        with pytest.raises(InvalidInput) as refused:
            check(f"a{before}{key[:cut]}{after}")
        assert "API key" in refused.value.message
        assert key[:cut] not in refused.value.message
    for limits in (Limits(models=(key,)), Limits(pool=key[:cut])):
        with pytest.raises(InvalidInput, match="without API keys"):
            check_limits(limits)
    check_name(f"the laptop that has {key[:12]}")
