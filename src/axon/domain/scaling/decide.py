"""The autoscaler's decision: signals of a group, its policy, the memory of the last look and a time give a number of
replicas, a reason in words, and the next memory. Pure, and total: no number makes it fail.

    up     at once, to what any signal needs at the high utilisation
    down   to what every look of the hold time needed at the middle utilisation, once the backlog was low for long;
           far too many go after the hold time, and a few of a large group stay
    zero   only a group that may be cold, was idle for its time, and is known to have no demand
"""

from dataclasses import dataclass, replace
from math import ceil, isfinite, sqrt

from axon.domain.scaling import need
from axon.domain.scaling.finite import amount, count, fraction
from axon.domain.scaling.memory import Memory
from axon.domain.scaling.policy import ScalingPolicy
from axon.domain.scaling.signals import Signals

_BOOST = 0.05
"""Part of the replicas that is added when a target is missed; at least one."""
_BOOST_PAUSE_S = 60.0
"""Latencies are measured over a minute: before it is over, another replica cannot have shown."""

_WANDER = 0.4
"""Standard deviations of one look's load by which the need wanders, as that deviation is itself an estimate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a look decided."""

    replicas: int
    reason: str
    expected: float = 0.0
    """Busy replicas that the arrivals are expected to keep when a replica ordered now serves."""
    memory: Memory


def decide(policy: ScalingPolicy, signals: Signals, memory: Memory, now: float) -> Decision:
    """Decides how many replicas the group shall have. Without knowledge of demand nothing changes but the bounds."""
    present = count(signals.ready) + count(signals.starting) if memory.replicas is None else memory.replicas
    if not signals.is_known or not isfinite(now):
        return _bounded(present, "demand is unknown: no change", policy, signals, memory)
    memory = _observed(policy, signals, memory, now)
    expected = need.expected_load(policy, signals, memory, now)
    if _may_be_cold(policy, signals):
        return _learned(_bounded(0, "idle for its time: cold", policy, signals, memory), policy, signals, expected, now)
    middle = (policy.utilisation_low + policy.utilisation_high) / 2
    most_urgent = need.largest(policy, signals, memory, expected, slots_aim=policy.utilisation_high)
    to_keep = need.largest(policy, signals, memory, expected, slots_aim=middle)
    reason = need.missed(policy, signals)
    if reason and _may_boost(policy, signals, memory, now):
        more = present + max(1, ceil(_BOOST * present))
        most_urgent, memory = max(most_urgent, need.Need(more, reason)), replace(memory, boosted=now)
    hold_s = max(amount(policy.hold_s), 2 * need.cold_start_s(policy, signals))
    memory = memory.with_need(now, max(to_keep.replicas, most_urgent.replicas), hold_s)
    replicas, why = present, f"{most_urgent.reason}: {present} suffice"
    if most_urgent.replicas > present:
        replicas, why = most_urgent.replicas, most_urgent.reason
        memory = replace(memory, raised=now)
    elif memory.largest_need <= present - _wander(memory, expected) and _may_go_down(
        policy, memory, present, now, hold_s
    ):
        replicas, why = memory.largest_need, f"{to_keep.reason}, and no more for {hold_s:.0f} s"
    elif memory.largest_need < present:
        why = f"{to_keep.reason}: kept, as the backlog or the last change is too young"
    return _learned(_bounded(replicas, why, policy, signals, memory), policy, signals, expected, now)


def _observed(policy: ScalingPolicy, signals: Signals, memory: Memory, now: float) -> Memory:
    """The memory with this look's load and the state of the backlog; nothing is learned from them yet."""
    load = signals.speed.seconds(signals.arrived) if signals.arrived is not None else None
    history = memory.history.add(now, load) if load is not None else memory.history
    limit = policy.backlog_down * count(signals.ready)
    pressure = need.pressure(policy, signals)
    is_low = pressure < limit or need.backlog_tokens(signals) == 0
    since = memory.quiet_since if memory.quiet_since is not None and memory.quiet_since <= now else now
    return replace(memory, history=history, quiet_since=since if is_low else None)


def _learned(decision: Decision, policy: ScalingPolicy, signals: Signals, expected: float, now: float) -> Decision:
    """The decision with a memory that has learned from this look, for the next one."""
    memory = decision.memory
    full = now if need.is_full(policy, signals) else memory.full
    filling, wave, ready = memory.filling, memory.wave, count(signals.ready)
    load = memory.history.samples[-1][1] if memory.history.samples else 0.0
    use = fraction(signals.utilisation)
    is_changing = count(signals.starting) > 0 or count(signals.draining) > 0
    if use is not None and ready > 0 and not is_changing and need.backlog_tokens(signals) == 0:
        filling = filling.learn(load / ready, use)
    if memory.history.samples:
        wave = wave.learn(*memory.history.samples[-1])
    changed = replace(memory, history=memory.history.learned(), filling=filling, wave=wave, full=full)
    return replace(decision, expected=expected, memory=changed)


def _may_be_cold(policy: ScalingPolicy, signals: Signals) -> bool:
    idle_s = signals.idle_s
    if idle_s is None or idle_s != idle_s or not policy.idle_s > 0 or policy.least > 0:
        return False
    asked = signals.demand != 0 or need.backlog_tokens(signals) > 0 or amount(signals.running) > 0
    return not asked and idle_s >= policy.idle_s


def _may_boost(policy: ScalingPolicy, signals: Signals, memory: Memory, now: float) -> bool:
    """One boost at a time: not while replicas start, nor before the last one can have shown."""
    pause_s = need.cold_start_s(policy, signals) + _BOOST_PAUSE_S
    return count(signals.starting) == 0 and (memory.boosted is None or not 0 <= now - memory.boosted < pause_s)


def _wander(memory: Memory, expected: float) -> int:
    """Replicas by which the need wanders under a steady load, at least one: fewer too many are kept."""
    return 1 if expected <= need.LARGE else max(1, round(_WANDER * sqrt(memory.history.dispersion * expected)))


def _may_go_down(policy: ScalingPolicy, memory: Memory, present: int, now: float, hold_s: float) -> bool:
    """Whether the backlog was low for long enough, and the last order for more is old enough.

    A group that was far too large for the whole hold time, as after a crowd, need not wait for the quiet time: that
    guards against going back and forth by a few. A few are a part of a small group, and in a large one as many as noise
    moves it by: the square root of its size.
    """
    quiet_s = now - memory.quiet_since if memory.quiet_since is not None else 0.0
    raised_s = now - memory.raised if memory.raised is not None and memory.raised <= now else policy.quiet_s
    few = max(2, ceil(min(policy.large_excess * present, sqrt(present))))
    if policy.large_excess < 1 and memory.largest_need <= present - few:
        return quiet_s >= min(hold_s, policy.quiet_s) and raised_s >= min(hold_s, policy.quiet_s)
    return quiet_s >= policy.quiet_s and raised_s >= policy.quiet_s


def _bounded(replicas: int, reason: str, policy: ScalingPolicy, signals: Signals, memory: Memory) -> Decision:
    """Held between the least and the most. What was up stays up with one replica until it may be cold; the ceiling
    wins over every need and minimum."""
    present = count(signals.ready) + count(signals.starting) if memory.replicas is None else memory.replicas
    least, most = policy.least, policy.most
    stays = present > 0 and not (signals.is_known and _may_be_cold(policy, signals))
    least = max(least, int(stays))
    if replicas > most:
        replicas, reason = most, f"{reason}: held by the ceiling of {most}"
    elif replicas < min(least, most):
        replicas, reason = min(least, most), f"{reason}: held by the minimum of {least}"
    return Decision(replicas=replicas, reason=reason, memory=replace(memory, replicas=replicas))
