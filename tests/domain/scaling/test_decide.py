"""The autoscaler's decisions: properties that hold for every load, and the rules one by one."""

import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.scaling.decide import Decision, decide
from axon.domain.scaling.filling import Filling
from axon.domain.scaling.memory import Memory
from axon.domain.scaling.need import by_load
from axon.domain.scaling.policy import ScalingPolicy
from axon.domain.scaling.signals import Signals, TenantRate
from axon.domain.scaling.work import Speed, Work
from axon.domain.tenants.tenant import Tier
from tests.domain.scaling.strategies import (
    NOON,
    arriving,
    histories,
    hostile,
    hostile_signals,
    loads,
    policies,
    waiting,
    watched,
)

POLICY = ScalingPolicy(min_replicas=1, max_replicas=100)


def settled(load: float, policy: ScalingPolicy = POLICY, *, looks: int = 200) -> tuple[Decision, float]:
    """The decision after a long time of one load, and the time of the next look."""
    decisions, now = watched(policy, [load] * looks)
    return decisions[-1], now


def turns(decisions: list[Decision]) -> int:
    """Changes of direction: up after down, or down after up."""
    steps = [after.replicas - before.replicas for before, after in pairwise(decisions)]
    signs = [step > 0 for step in steps if step]
    return sum(before != after for before, after in pairwise(signs))


# -- properties --------------------------------------------------------------------------------------------------


@given(policies, histories, loads, st.floats(0, 100), st.floats(0, 1000), st.floats(0, 1000))
def test_more_load_never_means_fewer_replicas(
    policy: ScalingPolicy, past: list[float], load: float, more: float, waits: float, waits_more: float
) -> None:
    decisions, now = watched(policy, past)
    memory = decisions[-1].memory if decisions else Memory()
    ready = memory.replicas or 1
    less = decide(policy, arriving(load, ready=ready, backlog=waiting(waits)), memory, now)
    loaded = arriving(load + more, ready=ready, backlog=waiting(waits + waits_more))
    assert decide(policy, loaded, memory, now).replicas >= less.replicas


@given(policies, histories, st.data())
def test_no_single_measure_of_load_makes_it_fall_by_rising(
    policy: ScalingPolicy, past: list[float], data: st.DataObject
) -> None:
    decisions, now = watched(policy, past)
    memory = decisions[-1].memory if decisions else Memory()
    given_load = data.draw(loads)
    base = arriving(given_load, ready=memory.replicas or 1, running=10.0, remaining=Work(answer=1000.0))
    name = data.draw(st.sampled_from(["utilisation", "kv_use", "ttft_s", "itl_s", "running", "demand"]))
    small, large = sorted((data.draw(st.floats(0, 1)), data.draw(st.floats(0, 1))))
    scale = 5000 if name in ("running", "demand") else 1
    values: list[Any] = [int(scale * small), int(scale * large)] if scale > 1 else [small, large]
    low, high = (replace(base, **{name: value}) for value in values)
    assert decide(policy, high, memory, now).replicas >= decide(policy, low, memory, now).replicas


@given(policies, histories, hostile_signals, st.one_of(hostile, st.just(NOON)))
def test_no_number_makes_it_fail_or_leave_its_bounds(
    policy: ScalingPolicy, past: list[float], signals: Signals, now: float
) -> None:
    decisions, _ = watched(policy, past)
    memory = decisions[-1].memory if decisions else Memory()
    for at in (now, NOON, NOON + 5, NOON - 5):
        decision = decide(policy, signals, memory, at)
        assert 0 <= decision.replicas <= policy.most
        assert decision.replicas >= min(policy.least, policy.most)
        assert decision.reason
        memory = decision.memory
    after = decide(policy, arriving(5.0), memory, NOON + 1000)
    assert 0 <= after.replicas <= policy.most


@pytest.mark.parametrize("load", [0.6, 3.0, 9.3, 22.0, 55.0])
def test_a_steady_load_with_noise_makes_it_change_direction_less_than_once_an_hour(load: float) -> None:
    generator = random.Random(f"steady {load}")
    noisy = [max(0.0, generator.gauss(load, 0.2 * load**0.5)) for _ in range(2 * 720)]
    decisions, _ = watched(POLICY, noisy)
    assert turns(decisions[120:]) < 2


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("load", "dispersion"), [(1000.0, 0.15), (8000.0, 1.0)])
def test_a_large_group_changes_direction_less_than_once_an_hour_too(load: float, dispersion: float, seed: int) -> None:
    generator, wide = random.Random(f"large {load} {seed}"), replace(POLICY, max_replicas=20_000)
    noisy = [generator.gauss(load, (dispersion * load) ** 0.5) for _ in range(3 * 1800)]
    decisions, _ = watched(wide, noisy)
    assert turns(decisions[450:]) < 3


@pytest.mark.parametrize(
    ("before", "after"), [(0.1, 80.0), (80.0, 0.1), (5.0, 7.0), (33.0, 21.5), (40.0, 39.0), (0.4, 0.9)]
)
def test_it_converges_to_one_number_after_a_step_of_the_load(before: float, after: float) -> None:
    decisions, _ = watched(POLICY, [before] * 100 + [after] * 750)
    last = [decision.replicas for decision in decisions[-100:]]
    assert len(set(last)) == 1
    assert after <= last[0] <= 2 + 1.5 * after


@given(policies, histories)
def test_its_memory_is_bounded(policy: ScalingPolicy, past: list[float]) -> None:
    decisions, _ = watched(policy, past * 3)
    for decision in decisions[-1:]:
        assert len(decision.memory.history.samples) <= 320
        assert len(decision.memory.needs) <= 512


# -- up ----------------------------------------------------------------------------------------------------------


def test_the_replicas_are_used_at_the_aim_under_a_steady_load() -> None:
    decision, _ = settled(20.0)
    assert 20 / 0.8 <= decision.replicas <= 20 / 0.7 + 1
    assert decision.expected == pytest.approx(20.0)


def test_slots_that_fill_slower_than_throughput_allow_for_fewer_replicas() -> None:
    """At 70 % of the slots such replicas serve 88 % of their throughput: the aim is in slots."""
    memory, now = Memory(), NOON
    for _ in range(600):
        ready = memory.replicas or 30
        share = 20.0 / ready
        used = 0.33 * share / (1 - share + 0.33 * share) if share < 1 else 1.0
        decision = decide(POLICY, arriving(20.0, ready=ready, utilisation=used), memory, now)
        memory, now = decision.memory, now + 5
    assert decision.replicas in (22, 23)


def test_it_orders_for_the_load_at_the_time_at_which_the_replica_will_serve() -> None:
    rise = [10.0] * 100 + [10.0 + 0.5 * look for look in range(12)]
    slow_start, now = watched(POLICY, rise[:-1])
    signals = arriving(rise[-1], ready=slow_start[-1].replicas)
    memory = slow_start[-1].memory
    soon = decide(POLICY, replace(signals, cold_start_s=1.0), memory, now)
    late = decide(POLICY, replace(signals, cold_start_s=90.0), memory, now)
    assert late.expected > soon.expected + 3.0
    assert late.replicas > soon.replicas


def test_a_backlog_over_its_limit_scales_up_at_once_and_says_so() -> None:
    decision, now = settled(5.0)
    ready = decision.replicas
    calm = decide(POLICY, arriving(5.0, ready=ready, backlog=waiting(1.1 * 2.0 * ready)), decision.memory, now)
    assert calm.replicas == ready
    pressed = decide(POLICY, arriving(5.0, ready=ready, backlog=waiting(40.0 * ready)), decision.memory, now)
    assert pressed.replicas > ready
    assert "tokens wait" in pressed.reason


def test_a_backlog_of_the_flex_tier_may_wait_longer() -> None:
    decision, now = settled(5.0)
    flex = arriving(5.0, ready=decision.replicas, backlog=waiting(20.0 * decision.replicas, Tier.FLEX))
    assert decide(POLICY, flex, decision.memory, now).replicas == decision.replicas


@pytest.mark.parametrize(
    "changes",
    [
        {"ttft_s": 2.3},
        {"itl_s": 0.056},
        {"attainment": 0.9},
        {"tenants": {"acme": TenantRate(served=10, promised=20, is_waiting=True)}},
    ],
)
def test_a_missed_target_of_a_busy_group_adds_one_replica_and_waits_for_it(changes: dict[str, Any]) -> None:
    decision, now = settled(5.0)
    busy = arriving(5.0, ready=decision.replicas, utilisation=0.75, **changes)
    first = decide(POLICY, busy, decision.memory, now)
    assert first.replicas == decision.replicas + 1
    again = decide(POLICY, busy, first.memory, now + 5)
    assert again.replicas == first.replicas
    idle = replace(busy, utilisation=0.2)
    assert decide(POLICY, idle, decision.memory, now).replicas == decision.replicas


def test_a_latency_within_a_tenth_of_its_target_is_left_alone() -> None:
    decision, now = settled(5.0)
    near = arriving(5.0, ready=decision.replicas, utilisation=0.75, ttft_s=2.15, itl_s=0.054)
    assert decide(POLICY, near, decision.memory, now).replicas == decision.replicas


def test_full_kv_blocks_scale_up() -> None:
    decision, now = settled(5.0)
    full = arriving(5.0, ready=decision.replicas, kv_use=0.99)
    assert decide(POLICY, full, decision.memory, now).replicas > decision.replicas


def test_long_answers_that_run_keep_their_replicas_when_arrivals_stop() -> None:
    decision, now = settled(20.0)
    memory, ready = decision.memory, decision.replicas
    for _ in range(400):
        long_answers = arriving(0.0, ready=ready, running=64.0 * 15, remaining=Work(answer=64 * 15 * 20_000.0))
        decision = decide(POLICY, long_answers, memory, now)
        memory, now, ready = decision.memory, now + 5, decision.replicas
    assert decision.replicas == 15


def test_without_a_measured_throughput_the_used_slots_decide() -> None:
    unknown = arriving(5.0, ready=4, speed=Speed(), utilisation=1.0)
    assert decide(POLICY, unknown, Memory(), NOON).replicas == 5
    assert decide(POLICY, replace(unknown, utilisation=None), Memory(), NOON).replicas == 4


def test_a_large_group_is_fuller_than_a_small_one_and_never_too_small() -> None:
    wide = replace(POLICY, max_replicas=20_000)
    spare = {}
    for load in (4.0, 16.0, 64.0, 1000.0, 9000.0):
        decision, _ = settled(load, wide, looks=60)
        spare[load] = decision.replicas / load - 1
        assert decision.replicas > load
    assert spare[4.0] >= spare[16.0] - 0.01 > spare[64.0] > spare[1000.0]
    assert spare[16.0] == pytest.approx(0.25, abs=0.07)
    assert spare[9000.0] == pytest.approx(1 / 0.95 - 1, abs=0.02)


@given(st.floats(0.05, 0.94), st.floats(0.0, 20_000.0), st.floats(0.0, 100.0), st.floats(-3.0, 3.0))
def test_more_load_needs_no_fewer_replicas_at_any_aim(aim: float, load: float, more: float, log_ratio: float) -> None:
    memory = Memory(filling=Filling(log_ratio=log_ratio, num=100))
    less, greater = (by_load(each, POLICY, arriving(each), memory, aim).replicas for each in (load, load + more))
    assert load - 1e-6 <= less <= greater


def test_the_expected_load_follows_a_fall_of_many_minutes() -> None:
    falling = [100.0 - 0.2 * look for look in range(350)]
    decisions, _ = watched(replace(POLICY, max_replicas=500), falling)
    assert falling[-1] <= decisions[-1].expected <= 1.2 * falling[-1]


def test_what_comes_in_after_refusals_is_no_trend() -> None:
    """Refused requests are not seen: when replicas come and more is let in, no more comes than before."""
    expected = []
    for waits_s in (0.0, 1000.0):
        decisions, now = watched(replace(POLICY, max_replicas=1000), [10.0] * 100)
        memory, ready = decisions[-1].memory, decisions[-1].replicas
        for load in (10.0, 10.0, 40.0, 40.0):
            decision = decide(POLICY, arriving(load, ready=ready, backlog=waiting(waits_s)), memory, now)
            memory, now = decision.memory, now + 2
        expected.append(decision.expected)
    assert expected[0] > 60.0
    assert expected[1] <= 41.0


def test_a_large_group_lets_go_after_the_hold_time_of_what_noise_does_not_explain() -> None:
    wide = replace(POLICY, max_replicas=20_000)
    decision, now = settled(4000.0, wide, looks=400)
    high, memory, began = decision.replicas, decision.memory, now
    while decision.replicas >= high and now < began + 2000:
        decision = decide(wide, arriving(3900.0, ready=high), memory, now)
        memory, now = decision.memory, now + 2
    assert now - began <= 300
    assert decision.replicas > 3900


# -- down and to zero --------------------------------------------------------------------------------------------


def seconds_until_down(load: float) -> tuple[float, Decision]:
    """Seconds from a last look with a backlog until a group that had a load of 20 goes down for another load."""
    decision, now = settled(20.0, looks=700)
    high, memory, began = decision.replicas, decision.memory, now
    loud = decide(POLICY, arriving(20.0, ready=high, backlog=waiting(0.4 * 2.0 * high)), memory, now)
    memory, now = loud.memory, now + 2
    while decision.replicas >= high and now < began + 2000:
        decision = decide(POLICY, arriving(load, ready=high), memory, now)
        memory, now = decision.memory, now + 2
    return now - began, decision


def test_a_few_replicas_too_many_go_only_after_the_backlog_was_low_for_ten_minutes() -> None:
    waited_s, decision = seconds_until_down(17.5)
    assert 600 <= waited_s <= 620
    assert decision.replicas == 24


def test_far_too_many_replicas_go_after_the_hold_time() -> None:
    waited_s, decision = seconds_until_down(2.0)
    assert 60 <= waited_s <= 300
    assert decision.replicas < 25


def test_with_no_part_as_a_large_excess_all_go_only_after_ten_minutes() -> None:
    strict = replace(POLICY, large_excess=1.0)
    decision, now = settled(20.0, strict, looks=700)
    memory, high = decision.memory, decision.replicas
    loud = decide(strict, arriving(20.0, ready=high, backlog=waiting(0.4 * 2.0 * high)), memory, now)
    later = decide(strict, arriving(2.0, ready=high), loud.memory, now + 590)
    assert later.replicas == high
    assert decide(strict, arriving(2.0, ready=high), later.memory, now + 1200).replicas < high


def test_one_low_look_takes_no_replica_away() -> None:
    decision, now = settled(20.0)
    low = decide(POLICY, arriving(0.0, ready=decision.replicas), decision.memory, now)
    assert low.replicas == decision.replicas


def test_a_new_leader_takes_no_replica_away_before_it_has_watched_for_the_hold_time() -> None:
    memory, now = Memory(), NOON
    for _ in range(29):
        decision = decide(POLICY, arriving(1.0, ready=10), memory, now)
        assert decision.replicas == 10
        memory, now = decision.memory, now + 2


COLD = ScalingPolicy(min_replicas=0, max_replicas=10, idle_s=300.0)


def test_an_idle_group_goes_cold_after_its_time_and_comes_back_with_the_first_request() -> None:
    idle = arriving(0.0, ready=1, demand=0, idle_s=299.0)
    kept = decide(COLD, idle, Memory(), NOON)
    assert kept.replicas == 1
    cold = decide(COLD, replace(idle, idle_s=300.0), kept.memory, NOON + 5)
    assert cold.replicas == 0
    still = decide(COLD, replace(idle, ready=0, idle_s=305.0), cold.memory, NOON + 10)
    assert still.replicas == 0
    asked = decide(COLD, replace(idle, ready=0, idle_s=0.0, demand=1), still.memory, NOON + 15)
    assert asked.replicas == 1


@pytest.mark.parametrize(
    "changes", [{"demand": None}, {"demand": 1}, {"idle_s": None}, {"backlog": None}, {"arrived": None}]
)
def test_it_never_goes_cold_with_demand_or_when_demand_is_unknown(changes: dict[str, Any]) -> None:
    idle = replace(arriving(0.0, ready=1, demand=0, idle_s=10_000.0), **changes)
    assert decide(COLD, idle, Memory(), NOON).replicas == 1


def test_a_hot_group_never_goes_cold() -> None:
    idle = arriving(0.0, ready=1, demand=0, idle_s=1e9)
    assert decide(replace(COLD, hot=True), idle, Memory(), NOON).replicas == 1
    assert decide(replace(COLD, idle_s=0.0), idle, Memory(), NOON).replicas == 1


def test_unknown_demand_changes_nothing() -> None:
    decision, now = settled(20.0)
    lost = decide(POLICY, Signals(), decision.memory, now)
    assert lost.replicas == decision.replicas
    assert "unknown" in lost.reason


# -- bounds ------------------------------------------------------------------------------------------------------


def test_the_ceiling_wins_and_is_named() -> None:
    decision, _ = settled(50.0, replace(POLICY, max_replicas=10))
    assert decision.replicas == 10
    assert "ceiling of 10" in decision.reason


@given(policies)
def test_a_decision_is_a_function_of_its_arguments(policy: ScalingPolicy) -> None:
    one, _ = watched(policy, [3.0, 9.0, 4.0])
    other, _ = watched(policy, [3.0, 9.0, 4.0])
    assert one == other
