"""Compares a new version with the old one over the same time, as often as one likes. Pure; knows no store and no clock.

The test is sequential: a product of likelihood ratios (an e-process: a nonnegative supermartingale while the new
version is not worse). By Ville's inequality it ever exceeds 1/α with a probability of at most α, so looking often does
not raise the chance of a false alarm, as repeated significance tests do.

It is stratified by time, as the Cochran–Mantel–Haenszel test is: the turns between two looks are one block, a 2×2 table

                    bad      turns
    new version     x        n₁              given k bad turns among n₁ + n₀, x has Fisher's noncentral hypergeometric
    both            k        n₁ + n₀         distribution, P_θ(x) ∝ C(n₁, x) · C(n₀, k − x) · θˣ, with the odds ratio θ

in which a load or a fault that both versions share cancels out: only the odds ratio is left, whatever the rates are and
however they change from block to block. The e-process of a criterion is the product of P_θ₁(x) / P_θ₀(x) over the
blocks, as in the safe logrank test of ter Schure, Pérez-Ortiz, Ly and Grünwald, averaged over several θ₁. θ₀ is the
tolerated odds ratio. For latencies, a turn is bad if it is above its block's median, with the new version's latencies
divided by the tolerated factor before (Mood's median test; θ₀ is 1).

Turns that fail together (one crash, several turns) are dependent. Each ratio is raised to the power 1/``_CLUSTER``,
which keeps the bound when that many turns share one cause.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import exp, lgamma, log

from axon.domain.registry.samples import Observed, Samples, buckets_of_factor, median_of
from axon.domain.registry.tolerance import Tolerance

_RATIOS = (1.5, 2.0, 4.0, 8.0, 32.0)
"""Alternatives θ₁ / θ₀, all with the same weight: small ones find small effects, large ones find large effects soon."""
_CLUSTER = 2.0
_BLOCK = 4
"""Turns that each version must begin in a block at least; with fewer, the block goes on until the next look."""
_DOUBT = log(10.0)
"""Evidence from which on a rollout stays at its step: ten to one."""


class Criterion(StrEnum):
    """In which respect the versions are compared."""

    ERRORS = "errors"
    MUTE = "mute"
    REFUSALS = "refusals"
    TTFT = "ttft"
    ITL = "itl"


_MOVES = (Criterion.ERRORS, Criterion.MUTE)
"""Criteria for which the sessions of an aborted version are moved: staying on it would break them."""
_LATENCIES = (Criterion.TTFT, Criterion.ITL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One block's 2×2 table."""

    new_bad: int
    new: int
    old_bad: int
    old: int

    @property
    def tells_something(self) -> bool:
        """Whether the table is evidence for anything: both versions have turns, and not all of them are alike."""
        return self.new > 0 and self.old > 0 and 0 < self.new_bad + self.old_bad < self.new + self.old


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the looks so far have found. Begin with an empty one, and let ``looked`` make the next."""

    seen: Observed | None = None
    """The cumulative samples at the end of the last block; None before the first look."""
    logs: Mapping[Criterion, tuple[float, ...]] = field(default_factory=dict)
    """Logarithm of each criterion's likelihood ratio so far, per alternative of ``_RATIOS``."""
    late: Mapping[Criterion, tuple[int, int]] = field(default_factory=dict)
    """Bad turns (new, old) that are not in a table yet, because more went bad in a block than began in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the comparison says."""

    criterion: Criterion | None = None
    """The criterion by which the new version is worst; None while there is no evidence against it."""
    is_worse: bool = False
    """Whether the rollout is to be aborted."""
    is_in_doubt: bool = False
    """Whether the rollout is to stay at its step for now."""
    reason: str = ""
    """A sentence with the figures."""

    @property
    def moves(self) -> bool:
        """Whether the sessions of the new version are to be moved off it."""
        return self.criterion in _MOVES


def looked(evidence: Evidence, observed: Observed, tolerance: Tolerance) -> Evidence:
    """The evidence after one more look at the cumulative samples. The first look only sets the mark to count from."""
    if evidence.seen is None:
        return Evidence(seen=observed)
    block = observed.since(evidence.seen)
    if min(block.old.begun, block.new.begun) < _BLOCK:
        return evidence
    logs, late = dict(evidence.logs), dict(evidence.late)
    for criterion in Criterion:
        if criterion in _LATENCIES:
            table = _latencies(criterion, block, tolerance)
        else:
            table, late[criterion] = _turns(criterion, block, late.get(criterion, (0, 0)))
        if table.tells_something:
            tolerated = 1.0 if criterion in _LATENCIES else tolerance.odds
            before = logs.get(criterion, (0.0,) * len(_RATIOS))
            gained = _log_ratios(table, tolerated)
            logs[criterion] = tuple(sum(pair) for pair in zip(before, gained, strict=True))
    return Evidence(seen=observed, logs=logs, late=late)


def verdict_of(evidence: Evidence, tolerance: Tolerance, *, old: str, new: str) -> Verdict:
    """The verdict on the evidence. A version is worse only with the minimum of samples on both sides."""
    seen = evidence.seen
    if seen is None:
        return Verdict()
    against = {each: _log_mean(logs) for each, logs in evidence.logs.items() if _matters(each, seen, tolerance)}
    if not against:
        return Verdict()
    criterion = max(against, key=lambda each: against[each])
    if against[criterion] < _DOUBT:
        return Verdict()
    has_enough = min(seen.old.begun, seen.new.begun) >= tolerance.min_samples
    is_worse = has_enough and against[criterion] >= log(len(Criterion) / tolerance.false_aborts)
    reason = f"{_figures(criterion, seen, old=old, new=new)}; {_odds(against[criterion])}"
    return Verdict(criterion=criterion, is_worse=is_worse, is_in_doubt=True, reason=reason)


def _turns(criterion: Criterion, block: Observed, late: tuple[int, int]) -> tuple[Table, tuple[int, int]]:
    """The table of turns that went bad in a block, of those that began in it.

    A turn that fails does so earlier than one that completes ends, so turns are counted when they begin: counting them
    at their ends would show the failures of a version's first minute alone. Bad turns that exceed those begun wait for
    the next block.
    """
    (new, new_bad), (old, old_bad) = _counted(criterion, block.new), _counted(criterion, block.old)
    new_bad, old_bad = new_bad + late[0], old_bad + late[1]
    table = Table(new_bad=min(new, new_bad), new=new, old_bad=min(old, old_bad), old=old)
    return table, (new_bad - table.new_bad, old_bad - table.old_bad)


def _counted(criterion: Criterion, samples: Samples) -> tuple[int, int]:
    """The number of turns, and of bad ones among them."""
    if criterion is Criterion.REFUSALS:
        return samples.begun + samples.refused, samples.refused
    return samples.begun, samples.mute if criterion is Criterion.MUTE else samples.errors


def _latencies(criterion: Criterion, block: Observed, tolerance: Tolerance) -> Table:
    """The table of turns above the block's median, with the new version's latencies divided by the tolerated factor."""
    old, new = _histogram(criterion, block.old), _histogram(criterion, block.new)
    if not old or not new:
        return Table(new_bad=0, new=0, old_bad=0, old=0)
    shift = buckets_of_factor(tolerance.slower)
    shifted = {bucket - shift: num for bucket, num in new.items()}
    num_new, num_old = sum(new.values()), sum(old.values())
    cut = _cut({bucket: old.get(bucket, 0) + shifted.get(bucket, 0) for bucket in old.keys() | shifted.keys()})
    return Table(new_bad=_above(shifted, cut), new=num_new, old_bad=_above(old, cut), old=num_old)


def _histogram(criterion: Criterion, samples: Samples) -> Mapping[int, int]:
    return samples.ttft if criterion is Criterion.TTFT else samples.itl


def _cut(histogram: Mapping[int, int]) -> int:
    """The bucket such that the part above it is nearest to a half."""
    total, above = sum(histogram.values()), sum(histogram.values())
    best, nearest = 0, float("inf")
    for bucket in sorted(histogram):
        above -= histogram[bucket]
        if (distance := abs(2 * above - total)) < nearest:
            best, nearest = bucket, distance
    return best


def _above(histogram: Mapping[int, int], cut: int) -> int:
    return sum(num for bucket, num in histogram.items() if bucket > cut)


def _log_ratios(table: Table, tolerated: float) -> tuple[float, ...]:
    """log P_θ₁(x) / P_θ₀(x), tempered, for each alternative."""
    bad = table.new_bad + table.old_bad
    support = range(max(0, bad - table.old), min(table.new, bad) + 1)
    ways = [_log_choose(table.new, x) + _log_choose(table.old, bad - x) for x in support]
    base = _log_weight(support, ways, log(tolerated))
    return tuple(
        (table.new_bad * log(ratio) + base - _log_weight(support, ways, log(tolerated * ratio))) / _CLUSTER
        for ratio in _RATIOS
    )


def _log_weight(support: range, ways: list[float], log_odds: float) -> float:
    """log Σ C(n₁, x) C(n₀, k − x) θˣ over the support."""
    terms = [way + x * log_odds for x, way in zip(support, ways, strict=True)]
    most = max(terms)
    return most + log(sum(exp(term - most) for term in terms))


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _log_mean(logs: tuple[float, ...]) -> float:
    """Logarithm of the mean of the likelihood ratios: a mixture of e-processes is one."""
    most = max(logs)
    return most + log(sum(exp(each - most) for each in logs) / len(logs))


def _matters(criterion: Criterion, seen: Observed, tolerance: Tolerance) -> bool:
    """Whether the difference is large enough in absolute terms to matter at all."""
    if criterion in _LATENCIES:
        return True
    (new, new_bad), (old, old_bad) = _counted(criterion, seen.new), _counted(criterion, seen.old)
    return new > 0 and old > 0 and new_bad / new - old_bad / old >= tolerance.excess


def _odds(log_evidence: float) -> str:
    return "evidence above 1,000,000 to 1" if log_evidence > log(1e6) else f"evidence {exp(log_evidence):,.0f} to 1"


_WORDS = {Criterion.ERRORS: "errs", Criterion.MUTE: "is mute", Criterion.REFUSALS: "refuses"}
_NAMES = {Criterion.TTFT: "time to first token", Criterion.ITL: "time between tokens"}


def _figures(criterion: Criterion, seen: Observed, *, old: str, new: str) -> str:
    if criterion in _LATENCIES:
        ours, theirs = (median_of(_histogram(criterion, each)) or 0.0 for each in (seen.new, seen.old))
        return f"{new} is slower: median {_NAMES[criterion]} {ours:.3g} s against {theirs:.3g} s of {old}"
    (turns, bad), (old_turns, old_bad) = _counted(criterion, seen.new), _counted(criterion, seen.old)
    return (
        f"{new} {_WORDS[criterion]}: {bad:,} of {turns:,} turns ({bad / turns:.1%}) against {old_bad:,} of "
        f"{old_turns:,} ({old_bad / old_turns:.1%}) of {old}"
    )
