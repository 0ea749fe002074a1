"""How many replicas a group needs by each of its signals, with the reason in words. Pure; keeps no state, holds no
hysteresis: each need is a level, not a step, and none of them falls when a load rises."""

from dataclasses import dataclass
from math import ceil, sqrt

from axon.domain.scaling import forecast
from axon.domain.scaling.finite import amount, count, fraction, positive
from axon.domain.scaling.memory import Memory
from axon.domain.scaling.policy import ScalingPolicy
from axon.domain.scaling.signals import Signals, TenantRate
from axon.domain.tenants.tenant import Tier

_BURST_Z = 1.0
"""Standard deviations of one look's load that the replicas serve beside the mean."""

_SMALL = 16.0
"""Busy replicas up to which the spare part is the one that the policy aims at."""
LARGE = 64.0
"""Busy replicas from which noise alone would move the need of a group up and down."""
_FULLEST = 0.95
"""Part of the slots that is in use at most in the largest group: no throughput is measured exactly."""

_CLEARING = 1 / 2
"""A backlog is cleared within this part of the cold-start time."""


@dataclass(frozen=True, slots=True, order=True)
class Need:
    """Replicas that one signal calls for."""

    replicas: int
    reason: str


def cold_start_s(policy: ScalingPolicy, signals: Signals) -> float:
    """The measured cold-start time, or the policy's until there is one."""
    return min(3600.0, positive(signals.cold_start_s) or amount(policy.cold_start_s))


def pressure(policy: ScalingPolicy, signals: Signals) -> float:
    """Replicas that would clear the backlog within each tier's target wait; 0 while the throughput is unknown."""
    return sum(
        (signals.speed.seconds(work) or 0.0) / policy.wait_s(tier) for tier, work in (signals.backlog or {}).items()
    )


def is_full(policy: ScalingPolicy, signals: Signals) -> bool:
    """Whether so much waits that admission may refuse requests: half of its bound, as its own forecast differs."""
    waits_s = sum(signals.speed.seconds(work) or 0.0 for work in (signals.backlog or {}).values())
    return policy.refused_s > 0 and waits_s > policy.refused_s / 2 * max(1, count(signals.ready))


def backlog_tokens(signals: Signals) -> float:
    """Tokens that wait."""
    return sum(work.tokens for work in (signals.backlog or {}).values())


def largest(policy: ScalingPolicy, signals: Signals, memory: Memory, expected: float, *, slots_aim: float) -> Need:
    """The largest of what the signals call for, to have at most ``slots_aim`` of the slots in use."""
    found = [by_demand(signals), by_kv(policy, signals)]
    if signals.speed.is_known:
        found += [
            by_load(expected, policy, signals, memory, slots_aim),
            by_backlog(expected, policy, signals),
            by_running(policy, signals),
        ]
    else:
        found.append(by_utilisation(signals, slots_aim))
    return max(found)


def expected_load(policy: ScalingPolicy, signals: Signals, memory: Memory, now: float) -> float:
    """Busy replicas that the arrivals will keep when a replica ordered now serves. ``memory`` has this look's load."""
    ahead_s = cold_start_s(policy, signals) + policy.look_s
    # Refused requests are not seen. When replicas come and admission lets in again, that is no trend.
    was_full = memory.full is not None and 0 <= now - memory.full < forecast.LONGEST_SLOPE_S
    limit = 1.0 if was_full else max(1.0, policy.growth_limit)
    load = forecast.ahead(memory.history, now, ahead_s, growth_limit=limit)
    return load * min(policy.growth_limit, memory.wave.growth(now, ahead_s)) if policy.learns_wave else load


def by_load(expected: float, policy: ScalingPolicy, signals: Signals, memory: Memory, slots_aim: float) -> Need:
    """Replicas for the expected arrivals, at the utilisation that is aimed at.

    The aim says how much is spare in a small group. What has to be spare grows with the square root of the load, as its
    noise does (square-root staffing, Halfin and Whitt 1981), so a large group is fuller. A lower aim than the high one
    adds its difference in a large group whatever decides, so that it too has a band in which nothing changes.
    """
    filling = memory.filling
    noise = sqrt(expected * min(expected, _SMALL))
    aim = slots_aim if expected <= LARGE else policy.utilisation_high
    spare = (1 / filling.throughput(aim) - 1) * noise
    smooth = max(expected + spare, expected / filling.throughput(max(aim, _FULLEST)))
    bursts = expected + _BURST_Z * sqrt(memory.history.dispersion * expected)
    kept = (1 / filling.throughput(slots_aim) - 1) * noise - spare
    ahead_s = cold_start_s(policy, signals) + policy.look_s
    return Need(_ceil(max(smooth, bursts) + kept), f"work for {expected:.2f} busy replicas expected in {ahead_s:.0f} s")


def by_backlog(expected: float, policy: ScalingPolicy, signals: Signals) -> Need:
    """Replicas that serve what comes and clear what will wait when they serve, if the backlog is over its limit.

    Everybody who comes while the backlog lasts is late, so it is cleared within the target wait; or within a part of
    the cold-start time where that is longer, because replicas that work for less time than they start cost too much.
    """
    ready = count(signals.ready)
    if pressure(policy, signals) <= policy.backlog_up * ready:
        return Need(0, "little waits")
    cold_s = cold_start_s(policy, signals)
    urgent_s = sum(
        (signals.speed.seconds(work) or 0.0) * policy.wait_s(Tier.DEFAULT) / policy.wait_s(tier)
        for tier, work in (signals.backlog or {}).items()
    )
    age_s = min(cold_s, amount(signals.starting_age_s, cold_s / 2))
    served_s = ready * cold_s + count(signals.starting) * age_s
    left_s = max(0.0, urgent_s + expected * cold_s - served_s)
    clearing = left_s / max(policy.wait_s(Tier.DEFAULT), _CLEARING * cold_s)
    return Need(_ceil(expected + clearing), f"{backlog_tokens(signals):,.0f} tokens wait")


def by_running(policy: ScalingPolicy, signals: Signals) -> Need:
    """Replicas whose slots the sequences fill that will still run when a replica ordered now serves."""
    slots, decode = positive(signals.slots), positive(signals.speed.decode)
    if slots is None:
        return Need(0, "slots unknown")
    itl_s = positive(signals.itl_s) or (slots / decode if decode else policy.itl_target_s)
    ahead_s = max(1.0, cold_start_s(policy, signals) + policy.look_s)
    still = min(amount(signals.running), amount(signals.remaining.answer) * itl_s / ahead_s)
    return Need(_ceil(still / slots), f"{still:.0f} sequences go on for {ahead_s:.0f} s and more")


def by_kv(policy: ScalingPolicy, signals: Signals) -> Need:
    """Replicas whose KV blocks hold what runs."""
    use = fraction(signals.kv_use) or 0.0
    if use <= policy.kv_high:
        return Need(0, "KV blocks suffice")
    return Need(_ceil(count(signals.ready) * use / policy.kv_high), f"{use:.0%} of the KV blocks in use")


def by_utilisation(signals: Signals, slots_aim: float) -> Need:
    """While no throughput was measured: replicas that bring the used slots to the aim."""
    use = fraction(signals.utilisation)
    if use is None:
        return Need(count(signals.ready) + count(signals.starting), "neither throughput nor utilisation is known")
    return Need(_ceil(count(signals.ready) * use / max(0.01, slots_aim)), f"{use:.0%} of the slots in use")


def by_demand(signals: Signals) -> Need:
    """One replica for whoever waits or runs."""
    wanted = count(signals.demand) > 0 or backlog_tokens(signals) > 0 or amount(signals.running) > 0
    return Need(int(wanted), f"{count(signals.demand)} unfinished turns" if wanted else "nothing asked for")


def missed(policy: ScalingPolicy, signals: Signals) -> str:
    """Which target is missed although the group is busy, in words; empty for none. In an idle group more replicas
    would not help: there it is the prompts that are long."""
    use = fraction(signals.utilisation) or 0.0
    is_busy = use >= policy.utilisation_low or pressure(policy, signals) >= policy.backlog_down * count(signals.ready)
    if not is_busy or count(signals.ready) == 0:
        return ""
    ttft, itl, met = positive(signals.ttft_s), positive(signals.itl_s), fraction(signals.attainment)
    if ttft and ttft > policy.latency_limit * policy.ttft_target_s:
        return f"the first token takes {ttft:.2f} s (p95)"
    if itl and itl > policy.latency_limit * policy.itl_target_s:
        return f"a token takes {1000 * itl:.0f} ms (p95)"
    if met is not None and met < policy.attainment:
        return f"{met:.1%} of the turns are within their targets"
    starved = sorted(name for name, rate in signals.tenants.items() if _is_starved(rate))
    return f"{starved[0]} gets fewer tokens than it was promised" if starved else ""


def _is_starved(rate: TenantRate) -> bool:
    return rate.is_waiting and amount(rate.served) < amount(rate.promised)


def _ceil(value: float) -> int:
    return ceil(min(1e6, value) - 1e-9)
