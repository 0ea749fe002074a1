"""Strategies and builders for the autoscaler's tests: sane signals, and hostile numbers."""

from typing import Any

from hypothesis import strategies as st

from axon.domain.scaling.decide import Decision, decide
from axon.domain.scaling.memory import Memory
from axon.domain.scaling.policy import ScalingPolicy
from axon.domain.scaling.signals import Signals, TenantRate
from axon.domain.scaling.work import Speed, Work
from axon.domain.tenants.tenant import Tier

SPEED = Speed(prefill=40_000.0, decode=10_000.0)
NOON = 43_200.0

hostile = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0.0, -1.0, 1e308, -1e308, 5e-324, float("nan"), float("inf"), float("-inf")]),
)
maybe_hostile: st.SearchStrategy[Any] = st.one_of(st.none(), hostile)
loads = st.floats(0.0, 200.0)
"""Busy replicas that arrivals keep."""


def arriving(load: float, **changes: Any) -> Signals:
    """Signals of a group on which work for so many busy replicas arrives, half of it prompts."""
    given: dict[str, Any] = {
        "ready": 10,
        "slots": 64,
        "arrived": Work(prompt=load * 20_000.0, answer=load * 5_000.0),
        "backlog": {},
        "demand": int(10 * load),
        "idle_s": 0.0,
        "speed": SPEED,
        "cold_start_s": 30.0,
    }
    return Signals(**{**given, **changes})


def waiting(seconds: float, tier: Tier = Tier.DEFAULT) -> dict[Tier, Work]:
    """A backlog that one replica clears in so many seconds."""
    return {tier: Work(prompt=seconds * 20_000.0, answer=seconds * 5_000.0)}


def watched(
    policy: ScalingPolicy, loads_seen: list[float], memory: Memory | None = None, *, start: float = NOON
) -> tuple[list[Decision], float]:
    """The decisions of one look for each load, with replicas that are ready at the next look; and the time after."""
    memory, now, decisions = memory or Memory(), start, []
    for load in loads_seen:
        ready = policy.least if memory.replicas is None else memory.replicas
        decision = decide(policy, arriving(load, ready=ready), memory, now)
        decisions.append(decision)
        memory, now = decision.memory, now + policy.look_s
    return decisions, now


policies = st.builds(
    lambda least, more, low, hot, idle: ScalingPolicy(
        min_replicas=least,
        max_replicas=least + more,
        utilisation_low=low,
        hot=hot,
        idle_s=idle,
    ),
    st.integers(0, 5),
    st.integers(0, 300),
    st.floats(0.3, 0.8),
    st.booleans(),
    st.sampled_from([0.0, 300.0]),
)
histories = st.lists(loads, max_size=30)

hostile_work = st.builds(lambda a, b: Work(prompt=a, answer=b), hostile, hostile)
hostile_signals = st.builds(
    Signals,
    ready=st.integers(-5, 10**9),
    starting=st.integers(-5, 10**9),
    draining=st.integers(-5, 10**9),
    slots=hostile,
    arrived=st.one_of(st.none(), hostile_work),
    backlog=st.one_of(st.none(), st.dictionaries(st.sampled_from(Tier), hostile_work)),
    demand=st.one_of(st.none(), st.integers(-5, 10**9)),
    idle_s=maybe_hostile,
    running=hostile,
    remaining=hostile_work,
    speed=st.builds(lambda a, b, c: Speed(prefill=a, decode=b, busy=c), maybe_hostile, maybe_hostile, maybe_hostile),
    cold_start_s=maybe_hostile,
    utilisation=maybe_hostile,
    kv_use=maybe_hostile,
    ttft_s=maybe_hostile,
    itl_s=maybe_hostile,
    attainment=maybe_hostile,
    tenants=st.dictionaries(
        st.text(max_size=3),
        st.builds(lambda a, b, c: TenantRate(served=a, promised=b, is_waiting=c), hostile, hostile, st.booleans()),
        max_size=2,
    ),
)
