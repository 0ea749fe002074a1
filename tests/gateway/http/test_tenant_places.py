"""A tenant holds as many places as it may, whatever others hold, and no more."""

from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.errors import LimitReached, Overloaded
from axon.gateway.http.tenant_places import TenantPlaces

MAX = 2
TENANTS = ("a", "b", "c")


def places() -> TenantPlaces:
    return TenantPlaces(MAX, "That is the limit.", code="too_many", retry_after_s=5.0)


def test_one_more_than_the_limit_is_refused_by_name() -> None:
    held = places()
    with held.held("a"), held.held("a"):
        with pytest.raises(LimitReached, match=r"That is the limit\.") as refused, held.held("a"):
            pass
        assert (refused.value.code, refused.value.retry_after_s) == ("too_many", 5.0)
        with held.held("b"):
            assert held.num_tenants == 2


def test_a_place_is_given_back_also_by_what_fails() -> None:
    held = places()
    for _ in range(MAX + 1):
        with pytest.raises(ValueError, match="broken"), held.held("a"):
            raise ValueError("broken")
    assert held.num_tenants == 0


def test_when_all_places_are_held_everybody_is_refused_until_one_is_given_back() -> None:
    held = TenantPlaces(MAX, "That is the limit.", code="too_many", retry_after_s=5.0, max_in_all=3)
    with held.held("a"), held.held("b"):
        with held.held("a"):
            with pytest.raises(LimitReached), held.held("a"):
                pass
            with pytest.raises(Overloaded) as refused, held.held("c"):
                pass
            assert refused.value.retry_after_s == 5.0
        with held.held("c"):
            assert held.num_tenants == 3


@given(st.lists(st.tuples(st.sampled_from(TENANTS), st.booleans())))
def test_nobody_ever_holds_more_and_a_tenant_without_places_is_forgotten(steps: list[tuple[str, bool]]) -> None:
    held, holding = places(), dict[str, list[ExitStack]]()
    for tenant, enters in steps:
        mine = holding.setdefault(tenant, [])
        if not enters:
            if mine:
                mine.pop().close()
        elif len(mine) == MAX:
            with pytest.raises(LimitReached), held.held(tenant):
                pass
        else:
            stack = ExitStack()
            stack.enter_context(held.held(tenant))
            mine.append(stack)
        assert held.num_tenants == sum(bool(each) for each in holding.values())
    for each in holding.values():
        for stack in each:
            stack.close()
    assert held.num_tenants == 0
