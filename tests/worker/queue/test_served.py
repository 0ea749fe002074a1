"""Counters: nobody saves up while it idles, what is served here counts at once, and a loss makes everybody equal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.adapters.live.memory.shares import MemoryShares
from axon.domain.fairness.share import cost
from axon.worker.queue.served import LEVEL, Served
from axon.worker.queue.sharing import Sharing
from tests.contracts.builders import make_job


def test_what_is_served_counts_before_it_is_told_while_it_is_and_after() -> None:
    served = Served()
    served.charge("a", 10.0)
    assert served.of("a") == 10.0
    assert served.take() == {"a": 10.0}
    served.charge("a", 5.0)
    assert served.of("a") == 15.0
    served.learn({"a": 30.0}, active=["a"])  # somebody else has served it too
    assert served.of("a") == 35.0


def test_what_was_not_heard_is_told_again() -> None:
    served = Served()
    served.charge("a", 10.0)
    served.take()
    served.charge("a", 1.0)
    assert served.take() == {"a": 11.0}


def test_who_comes_back_from_idling_is_not_below_those_who_are_here() -> None:
    served = Served()
    served.learn({"a": 100.0, "b": 500.0, "c": 700.0}, active=["b", "c"])
    assert (served.of("a"), served.level) == (500.0, 500.0)
    assert served.of("new") == 500.0


@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), st.floats(0, 1e6)), max_size=8), st.sets(st.sampled_from("abc"))
)
def test_the_level_never_falls_and_nobody_is_below_it(told: list[dict[str, float]], active: set[str]) -> None:
    served, before = Served(), 0.0
    for counters in told:
        served.learn(counters, active=active)
        assert served.level >= before
        assert all(served.of(tenant) >= served.level for tenant in "abcd")
        before = served.level


def test_tokens_found_in_a_cache_are_cheap_and_emitted_ones_dear() -> None:
    assert cost(prefilled=10, cached=0, emitted=0) > cost(prefilled=0, cached=10, emitted=0) > 0
    assert cost(prefilled=0, cached=0, emitted=1) > cost(prefilled=1, cached=0, emitted=0)


async def test_workers_learn_from_each_other_in_one_round_each() -> None:
    shares = MemoryShares()
    one, two = (Sharing(shares, "small", lambda: {"a", "b"}) for _ in range(2))
    one.charge(make_job(tenant="a", weight=2.0), prefilled=100, emitted=50)
    await one.exchange()
    await two.exchange()
    assert two.served.of("a") == pytest.approx(100.0)
    two.charge(make_job(tenant="b", priority=1), emitted=100)
    await two.exchange()
    await one.exchange()
    assert one.served.of("b") == pytest.approx(100.0)


async def test_after_the_counters_are_lost_everybody_is_at_the_level() -> None:
    shares = MemoryShares()
    sharing = Sharing(shares, "small", lambda: {"a", "b"})
    for tenant, num in (("a", 500), ("b", 900)):
        sharing.charge(make_job(tenant=tenant), emitted=num)
    await sharing.exchange()
    await sharing.exchange()
    assert sharing.served.level == pytest.approx(1000.0)
    shares.lose_everything()
    await sharing.exchange()
    assert sharing.served.of("a") == sharing.served.of("b") == sharing.served.level
    sharing.charge(make_job(tenant="a"), emitted=10)
    await sharing.exchange()
    fresh = Sharing(shares, "small", lambda: {"a", "b"})
    await fresh.exchange()
    assert fresh.served.of("a") - fresh.served.of("b") == pytest.approx(20.0)
    assert (await shares.counters("small", [LEVEL]))[LEVEL] == pytest.approx(1000.0)
