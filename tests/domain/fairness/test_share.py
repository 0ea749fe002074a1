"""Slots are shared by weight, to the part of a slot, and what one leaves is the others'."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.fairness.share import Want, beyond, effective_weight, fair_slots, most_over, short_of
from axon.domain.tenants.tenant import Tier

WANTS = st.dictionaries(
    st.sampled_from("abcdefgh"),
    st.builds(
        Want,
        held=st.integers(0, 20),
        waiting=st.integers(0, 20),
        weight=st.floats(0.1, 10),
        reserved=st.sampled_from([0.0, 0.0, 0.05, 0.1]),
    ),
    max_size=8,
)


def want(held: int, waiting: int = 0, weight: float = 1.0, reserved: float = 0.0) -> Want:
    return Want(held=held, waiting=waiting, weight=weight, reserved=reserved)


@given(st.integers(1, 32), WANTS)
def test_all_slots_are_somebodys_and_nobody_gets_more_than_it_wants(num_slots: int, wants: dict[str, Want]) -> None:
    parts = fair_slots(num_slots, wants)
    assert parts.keys() == wants.keys()
    assert all(parts[tenant] <= wants[tenant].num + 1e-6 for tenant in wants)
    assert sum(parts.values()) == pytest.approx(min(num_slots, sum(want.num for want in wants.values())))


@given(st.integers(1, 32), WANTS)
def test_who_is_not_content_has_no_less_by_its_weight_than_anybody(num_slots: int, wants: dict[str, Want]) -> None:
    parts = fair_slots(num_slots, wants)
    for tenant, one in wants.items():
        if parts[tenant] > one.num - 1e-6:
            continue
        for other, another in wants.items():
            by_reserve = parts[other] <= another.reserved * num_slots + 1e-6
            assert by_reserve or parts[tenant] / one.weight >= parts[other] / another.weight - 1e-6


@given(st.integers(1, 32), WANTS)
def test_a_reserve_is_there_for_who_asks(num_slots: int, wants: dict[str, Want]) -> None:
    parts = fair_slots(num_slots, wants)
    for tenant, one in wants.items():
        assert parts[tenant] >= min(one.num, one.reserved * num_slots) - 1e-6


@pytest.mark.parametrize(
    ("wants", "parts"),
    [
        ({"a": want(16, 80), "b": want(0, 8)}, {"a": 8, "b": 8}),
        ({"a": want(16, 80), "b": want(0, 2)}, {"a": 14, "b": 2}),
        ({"a": want(0, 99, weight=3), "b": want(0, 99)}, {"a": 12, "b": 4}),
        ({"a": want(16, 80, weight=100), "b": want(0, 9, reserved=0.25)}, {"a": 12, "b": 4}),
        ({"a": want(3)}, {"a": 3}),
        ({}, {}),
    ],
)
def test_slots_by_weight(wants: dict[str, Want], parts: dict[str, float]) -> None:
    assert fair_slots(16, wants) == pytest.approx(parts)


@given(st.integers(1, 32), WANTS)
def test_yielding_slot_by_slot_comes_to_an_end_with_nobody_short(num_slots: int, wants: dict[str, Want]) -> None:
    """Each exchange brings both nearer to their parts, so there is no going round in circles."""
    for _ in range(200):
        short = short_of(num_slots, wants)
        over = most_over(num_slots, wants)
        if not short or over is None:
            break
        assert short[0] != over
        gets, yields = wants[short[0]], wants[over]
        wants |= {
            short[0]: want(gets.held + 1, gets.waiting - 1, gets.weight, gets.reserved),
            over: want(yields.held - 1, yields.waiting + 1, yields.weight, yields.reserved),
        }
    else:
        pytest.fail("it goes round in circles")


def test_nobody_yields_for_less_than_a_slot() -> None:
    wants = {name: want(1, 5) for name in "abcd"} | {"e": want(0, 5)}
    assert short_of(4, wants) == []
    assert most_over(4, wants) is None


@given(st.integers(1, 32), WANTS)
def test_whoever_holds_too_much_is_named_worst_first(num_slots: int, wants: dict[str, Want]) -> None:
    parts = fair_slots(num_slots, wants)
    found = [wants[tenant].held - parts[tenant] for tenant in beyond(num_slots, wants)]
    assert found == sorted(found, reverse=True)
    assert len(found) == sum(wants[tenant].held > parts[tenant] + 1e-9 for tenant in wants)


def test_a_tier_counts_as_a_multiple_of_the_weight() -> None:
    assert [effective_weight(3.0, tier) for tier in (Tier.PRIORITY, Tier.DEFAULT, Tier.FLEX)] == [6.0, 3.0, 1.5]
