"""Rates of two looks: of processes that are in both, never negative, and a whole that is the sum of its parts."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.console.top.rates import GatewayFlow, Rates, TenantFlow, baseline, rates
from axon.domain.histogram import quantile
from axon.domain.overview import TenantLook
from tests.console.top.looks import counts, gateway, overview, tenant, worker

counters = st.integers(0, 10**9)
names = st.sampled_from(["acme", "globex", "zürich", "日本"])
activities = st.dictionaries(names, st.tuples(st.integers(0, 9), counters, counters), max_size=4).map(
    lambda found: tuple(tenant(name, *each) for name, each in sorted(found.items()))
)
workers = st.builds(
    worker,
    st.sampled_from(["w1", "w2", "w3"]),
    at=st.floats(0.0, 50.0),
    model=st.sampled_from(["small", "large"]),
    running=st.integers(0, 8),
    answer=counters,
    prompt=counters,
    requests=counters,
    tenants=activities,
    ttft=st.lists(st.integers(0, 9), max_size=20).map(tuple),
    gaps=st.lists(st.integers(0, 9), max_size=20).map(tuple),
    life=st.integers(1, 2),
)
gateways = st.builds(
    gateway,
    st.sampled_from(["gateway-1", "gateway-2"]),
    up_s=st.floats(0.0, 100.0),
    requests=st.dictionaries(st.sampled_from(["200", "429", "503"]), counters),
    rejected=counters,
)
overviews = st.builds(
    lambda found, at, of: overview(*found, at=at, of=of),
    st.lists(workers, max_size=4, unique_by=lambda each: each.name),
    st.floats(0.0, 100.0),
    gateways,
)
bare = st.builds(lambda at, name: overview(at=at, of=gateway(name)), st.floats(0.0, 100.0), st.sampled_from("ab"))
"""Looks without a worker."""


def test_tokens_a_second_are_over_the_time_between_a_workers_own_announcements() -> None:
    before = overview(worker(at=100.0, answer=50, prompt=10, requests=1), at=100.9)
    after = overview(worker(at=104.0, answer=450, prompt=90, requests=3), at=104.1)
    found = rates(before, after)
    assert (found.fleet.answer_per_s, found.fleet.prompt_per_s, found.fleet.requests_per_s) == (100.0, 20.0, 0.5)
    assert found.models["small"] == found.workers["w1-life-1"] == found.fleet
    assert found.seconds == pytest.approx(3.2)


def test_latencies_are_those_since_the_look_before() -> None:
    before = overview(worker(ttft=counts(9.0, 9.0), gaps=counts(5.0)))
    after = overview(
        worker(at=101.0, ttft=counts(9.0, 9.0, *[0.1] * 99, 3.0), gaps=counts(5.0, 0.02)),
        worker("w2", at=101.0, ttft=counts(8.0)),
        at=101.0,
    )
    found = rates(before, after).fleet
    assert found.ttft.num == 100
    assert found.ttft.p50_s == quantile(counts(*[0.1] * 99, 3.0), 0.5)
    assert found.ttft.p99_s is not None
    assert found.ttft.p99_s < 0.12
    assert (found.gaps.num, found.gaps.p99_s is not None) == (1, True)


@pytest.mark.parametrize(
    "before",
    [
        None,
        overview(),
        overview(worker(answer=1, life=2)),
        overview(worker(at=101.0, answer=1)),
    ],
    ids=["no look", "no worker", "another run", "no news"],
)
def test_a_worker_that_two_looks_do_not_tell_of_has_no_rate(before: object) -> None:
    found = rates(before, overview(worker(at=101.0, answer=9), at=101.0))  # type: ignore[arg-type]
    assert found.fleet.answer_per_s is None
    assert found.workers == {}
    assert found.models["small"].ttft.p50_s is None


def test_a_tenants_tokens_are_summed_over_workers_and_shared_out() -> None:
    before = overview(
        worker("w1", tenants=(tenant("acme", 1, 0, 10), tenant("globex", 0, 0, 5))),
        worker("w2", tenants=(tenant("acme", 1, 100, 10),)),
    )
    after = overview(
        worker("w1", at=102.0, tenants=(tenant("acme", 2, 0, 30), tenant("globex", 1, 0, 25))),
        worker("w2", at=102.0, tenants=(tenant("acme", 3, 110, 30), tenant("new", 1, 5, 5))),
        at=102.0,
    )
    found = rates(before, after).tenants
    assert found["acme"] == TenantFlow(running=5, answer_per_s=20.0, prompt_per_s=5.0, share=25 / 35)
    assert found["globex"] == TenantFlow(running=1, answer_per_s=10.0, prompt_per_s=0.0, share=10 / 35)
    assert found["new"] == TenantFlow(running=1), "it may have been left out of the list before"


def test_a_tenant_that_a_worker_had_forgotten_counts_anew() -> None:
    before = overview(worker(tenants=(tenant("acme", 0, 0, 10**6),)))
    after = overview(worker(at=101.0, tenants=(tenant("acme", 1, 0, 30),)), at=101.0)
    assert rates(before, after).tenants["acme"].answer_per_s == 30.0


def test_the_gateways_own_rates_need_the_same_gateway() -> None:
    before = overview(of=gateway(up_s=10.0, requests={"200": 5, "500": 1}, rejected=1, ttft=(1, 0)), at=100.0)
    after = overview(of=gateway(up_s=12.0, requests={"200": 9, "503": 4}, rejected=2, ttft=(1, 3)), at=102.0)
    flow = rates(before, after).gateway
    assert (flow.requests_per_s, flow.failed_per_s, flow.rejected_per_s) == (3.5, 1.5, 0.5)
    assert (flow.ttft.num, flow.ttft.p50_s) == (3, 0.55)
    other = replace(after, gateway=replace(after.gateway, name="gateway-2"))
    assert rates(before, other).gateway == GatewayFlow()


def test_a_tenants_requests_are_counted_at_the_gateway_that_answered() -> None:
    before = overview(of=gateway(up_s=10.0), tenants=(TenantLook(tenant="acme", requests=4),))
    now = (TenantLook(tenant="acme", requests=8, rejected=2), TenantLook(tenant="new", requests=6))
    after = overview(of=gateway(up_s=12.0), tenants=now, at=102.0)
    found = rates(before, after).tenants
    assert (found["acme"].requests_per_s, found["acme"].rejected_per_s) == (2.0, 1.0)
    assert found["new"].requests_per_s == 3.0
    partial = replace(before, num_tenants=500)
    assert rates(partial, after).tenants["new"].requests_per_s is None, "it may have been left out of the list before"


@given(overviews, overviews)
def test_no_rate_is_negative_and_the_fleet_is_the_sum_of_its_models_and_workers(before: object, after: object) -> None:
    found = rates(before, after)  # type: ignore[arg-type]
    for flow in (found.fleet, *found.workers.values(), *found.models.values()):
        for rate in (flow.answer_per_s, flow.prompt_per_s, flow.requests_per_s):
            assert rate is None or rate >= 0
        assert flow.ttft.p50_s is None or flow.ttft.p99_s is None or flow.ttft.p50_s <= flow.ttft.p99_s
    for parts in (found.workers, found.models):
        known = [each.answer_per_s for each in parts.values() if each.answer_per_s is not None]
        assert sum(known) == pytest.approx(found.fleet.answer_per_s or 0.0)
    shares = [each.share for each in found.tenants.values() if each.share is not None]
    assert not shares or sum(shares) == pytest.approx(1.0)


@given(overviews)
def test_the_same_look_twice_tells_no_rate(look: object) -> None:
    found: Rates = rates(look, look)  # type: ignore[arg-type]
    assert (found.fleet.answer_per_s, found.workers, found.gateway) == (None, {}, GatewayFlow())


@given(st.lists(bare, max_size=8), bare, st.floats(0.0, 50.0))
def test_a_look_is_compared_with_an_earlier_one_of_its_own_gateway_if_there_is_any(
    history: list[object], after: object, window_s: float
) -> None:
    found = baseline(history, after, window_s)  # type: ignore[arg-type]
    earlier = [each for each in history if each.at < after.at]  # type: ignore[attr-defined]
    assert (found is None) == (not earlier)
    if found is None:
        return
    same = [each for each in earlier if each.gateway.name == after.gateway.name]  # type: ignore[attr-defined]
    assert not same or found in same
    old = [each for each in same or earlier if after.at - each.at >= window_s]  # type: ignore[attr-defined]
    assert found.at == (max if old else min)(each.at for each in old or same or earlier)  # type: ignore[attr-defined]
