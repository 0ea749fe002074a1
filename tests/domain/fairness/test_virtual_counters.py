"""Counters rise with service, never fall below the level, and forget nobody who would lose by it."""

from hypothesis import given
from hypothesis import strategies as st

from axon.domain.fairness.virtual_counters import VirtualCounters

tenants = st.sampled_from("abc")
charges = st.lists(st.tuples(tenants, st.floats(0, 100)), max_size=20)


def test_a_tenant_that_returns_from_idle_has_saved_up_nothing() -> None:
    counters = VirtualCounters()
    counters.charge("busy", 50.0)
    counters.raise_level(["busy"])
    assert counters.of("idle") == 50.0
    counters.charge("idle", 1.0)
    assert counters.of("idle") == 51.0


def test_without_an_active_tenant_the_level_stays() -> None:
    counters = VirtualCounters()
    counters.charge("a", 5.0)
    counters.raise_level([])
    assert counters.level == 0.0


@given(charges, st.lists(tenants))
def test_no_counter_is_below_the_level_and_the_level_never_falls(
    served: list[tuple[str, float]], active: list[str]
) -> None:
    counters, levels = VirtualCounters(), [0.0]
    for tenant, amount in served:
        before = counters.of(tenant)
        counters.charge(tenant, amount)
        assert counters.of(tenant) == before + amount
        counters.raise_level(active)
        levels.append(counters.level)
    assert levels == sorted(levels)
    assert all(counters.of(tenant) >= counters.level for tenant in "abc")


@given(charges, st.sets(tenants))
def test_to_forget_idle_tenants_changes_nobodys_counter(served: list[tuple[str, float]], active: set[str]) -> None:
    counters = VirtualCounters()
    for tenant, amount in served:
        counters.charge(tenant, amount)
    counters.raise_level(active)
    before = {tenant: counters.of(tenant) for tenant in "abc"}
    counters.forget(active)
    assert {tenant: counters.of(tenant) for tenant in "abc"} == before


def test_what_is_forgotten_takes_no_memory() -> None:
    counters = VirtualCounters()
    for number in range(100):
        counters.charge(str(number), 1.0)
    counters.lift("busy", 10.0)
    counters.raise_level(["busy"])
    counters.forget(["busy"])
    assert len(counters) == 1


@given(st.dictionaries(tenants, st.floats(0, 100)), st.floats(0, 100))
def test_counters_that_were_read_elsewhere_replace_ours_but_lower_no_level(
    read: dict[str, float], level: float
) -> None:
    counters = VirtualCounters()
    counters.replace({}, level=level)
    counters.replace(read, level=level / 2)
    assert counters.level == level
    assert all(counters.of(tenant) == max(level, value) for tenant, value in read.items())
