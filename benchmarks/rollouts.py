"""How often is a good version's rollout aborted, and how soon a bad one's? Simulated turns, the production comparison.

    python -m benchmarks.rollouts              # 500 good versions, 200 of each bad one; about seven minutes on one core
    python -m benchmarks.rollouts --runs 50    # fewer of each

The noise: arrivals are Poisson; TTFT is log-normal; load is an autocorrelated factor that both versions share, with
patches of 20 s in which everything takes three times as long; each version's workers have an autocorrelated factor of
their own; half of the errors come in clusters (a crash fails several turns of one version at once), and there are
short times in which both versions err. One turn in a hundred is refused before it is accepted, more of them in those
times, and one client in five leaves after some seconds without a first token. Turns are noted as gateways note them:
begun at once, TTFT with the first token, errors and times between tokens with the end. The comparison looks every
second.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from axon.domain.registry.comparison import Criterion, Evidence, Verdict, looked, verdict_of
from axon.domain.registry.samples import Observed, Samples, bucket_of_latency
from axon.domain.registry.tolerance import Tolerance

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """What a version is like."""

    errors: float = 0.005
    """Probability that a turn fails."""
    slower: float = 1.0
    """Factor on TTFT and time between tokens."""
    mute: float = 0.0
    """Probability that a turn never gets its first token."""
    refuses: float = 0.01
    """Probability that a turn is refused, after it was decided which version answers it."""
    leaves_s: float = float("inf")
    """Seconds without a first token after which every client has left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What comes, and how the rollout deals it."""

    turns_per_s: float = 20.0
    shares: tuple[float, ...] = (0.05, 0.25, 0.5)
    """Shares of the new version; one hundred percent has no old version to compare with, so it is left out."""
    bake_s: int = 300
    own_noise: float = 0.1
    """Standard deviation of the logarithm of the factor that each version's workers have of their own, which the
    comparison cannot tell from a difference between the versions."""
    own_memory: float = 0.8
    """Correlation of that factor from one second to the next."""


TRAFFIC = Traffic()
TOLERANCE = Tolerance(mute_s=10.0)
GOOD = Quality()
BAD = {
    "errs, 5 % of turns": Quality(errors=0.05),
    "errs, every turn": Quality(errors=1.0),
    "is 2× slower": Quality(slower=2.0),
    "is mute": Quality(mute=1.0),
    "is mute, and every client leaves within 5 s": Quality(mute=1.0, leaves_s=5.0),
    "refuses 5 % of turns": Quality(refuses=0.05),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One simulated rollout."""

    verdict: Verdict
    seconds: int
    """Seconds until it was aborted, or all that it lasted."""
    num_new: int
    """Turns that the new version had begun by then."""
    num_old: int


def simulate(quality: Quality, seed: int, *, traffic: Traffic = TRAFFIC, tolerance: Tolerance = TOLERANCE) -> Run:
    """One rollout of a version like this, looked at every second until it is aborted or its last step ends."""
    evidence, verdict, second, observed = Evidence(), Verdict(), 0, Observed()
    for second, observed in enumerate(_observed(quality, traffic, tolerance, np.random.default_rng(seed))):  # noqa: B007
        evidence = looked(evidence, observed, tolerance)
        verdict = verdict_of(evidence, tolerance, old="small@v1", new="small@v2")
        if verdict.is_worse:
            break
    return Run(verdict=verdict, seconds=second, num_new=observed.new.begun, num_old=observed.old.begun)


def _observed(quality: Quality, traffic: Traffic, tolerance: Tolerance, rng: np.random.Generator) -> Iterator[Observed]:
    """The cumulative samples at each second."""
    num_s = len(traffic.shares) * traffic.bake_s
    share = np.repeat(traffic.shares, traffic.bake_s)
    arrivals = rng.poisson(traffic.turns_per_s * np.exp(_autocorrelated(rng, num_s, sd=0.2, memory=0.98)))
    begun = np.repeat(np.arange(num_s), arrivals)
    is_new = rng.random(len(begun)) < share[begun]
    level = _autocorrelated(rng, num_s, sd=0.4, memory=0.95) + np.log(3.0) * _patches(rng, num_s, every_s=300, for_s=20)
    shared = _Shared(
        level=level,
        errs=_patches(rng, num_s, every_s=400, for_s=5),
        num_s=num_s,
        own_noise=traffic.own_noise,
        own_memory=traffic.own_memory,
    )
    now = Observed()
    sides = [_events(begun[mask], each, shared, tolerance, rng) for mask, each in ((~is_new, GOOD), (is_new, quality))]
    yield now
    for second in range(num_s):
        old, new = (_added(samples, side, second) for samples, side in zip((now.old, now.new), sides, strict=True))
        now = Observed(old=old, new=new)
        yield now


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    """What both versions have in common."""

    level: Array
    """Logarithm of the factor on all latencies, per second."""
    errs: Array
    """1 in the seconds in which one turn in five fails, else 0."""
    num_s: int
    own_noise: float
    own_memory: float


def _patches(rng: np.random.Generator, num_s: int, *, every_s: float, for_s: int) -> Array:
    """1 in patches of ``for_s`` seconds, about one in ``every_s`` seconds, else 0."""
    inside = np.zeros(num_s)
    for start in np.flatnonzero(rng.random(num_s) < 1 / every_s):
        inside[start : start + for_s] = 1.0
    return inside


def _autocorrelated(rng: np.random.Generator, num: int, *, sd: float, memory: float) -> Array:
    """An AR(1) process with this standard deviation."""
    noise = rng.normal(0.0, sd * np.sqrt(1 - memory**2), num)
    noise[0] = rng.normal(0.0, sd)
    for index in range(1, num):
        noise[index] += memory * noise[index - 1]
    return noise


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """What one version's turns add in each second."""

    begun: Array
    errors: Array
    refused: Array
    mute: Array
    ttft: Sequence[Counter[int]]
    itl: Sequence[Counter[int]]


def _events(begun: Array, quality: Quality, shared: _Shared, tolerance: Tolerance, rng: np.random.Generator) -> _Side:
    num_s = shared.num_s
    is_refused = rng.random(len(begun)) < quality.refuses + 0.1 * shared.errs[begun]
    refused, begun = begun[is_refused], begun[~is_refused]
    num = len(begun)
    own = _autocorrelated(rng, num_s, sd=shared.own_noise, memory=shared.own_memory)
    level = np.exp(shared.level[begun] + own[begun]) * quality.slower
    ttft = 0.4 * level * np.exp(rng.normal(0.0, 0.6, num))
    itl = 0.02 * level * np.exp(rng.normal(0.0, 0.25, num))
    lasts = ttft + itl * rng.geometric(1 / 200, num)
    fails = _failures(begun, quality.errors, shared, rng)
    is_mute = rng.random(num) < quality.mute
    failed_at = begun + np.where(rng.random(num) < 0.5, 0.1, lasts)
    stays_s = np.minimum(_patience(num, rng), min(quality.leaves_s, tolerance.mute_s))
    is_unheard = (is_mute | (ttft > stays_s)) & ~fails
    leaves = is_unheard & (stays_s < tolerance.mute_s)
    speaks = ~is_mute & ~fails & ~leaves
    return _Side(
        begun=_per_second(begun, num_s),
        errors=_per_second(failed_at[fails], num_s),
        refused=_per_second(refused, num_s),
        mute=_per_second((begun + stays_s)[is_unheard], num_s),
        ttft=_histograms((begun + ttft)[speaks], ttft[speaks], num_s),
        itl=_histograms((begun + lasts)[speaks], itl[speaks], num_s),
    )


def _patience(num: int, rng: np.random.Generator) -> Array:
    """Seconds for which each client waits for a first token: one in five leaves after about three."""
    is_patient = rng.random(num) >= 0.2
    patience: Array = np.where(is_patient, np.inf, 3.0 * np.exp(rng.normal(0.0, 0.5, num)))
    return patience


def _failures(begun: Array, rate: float, shared: _Shared, rng: np.random.Generator) -> Array:
    """Which turns fail: half of them alone, half in clusters of neighbours; and short times in which many do."""
    num = len(begun)
    fails = rng.random(num) < (rate if rate >= 1 else rate / 2)
    for start in np.flatnonzero(rng.random(num) < rate / 2 / 3):
        fails[start : start + rng.integers(2, 5)] = True
    failed: Array = fails | (rng.random(num) < 0.2 * shared.errs[begun])
    return failed


def _per_second(at: Array, num_s: int) -> Array:
    inside = at[at < num_s].astype(int)
    return np.bincount(inside, minlength=num_s)


def _histograms(at: Array, values: Array, num_s: int) -> Sequence[Counter[int]]:
    found: list[Counter[int]] = [Counter() for _ in range(num_s)]
    for second, value in zip(at.astype(int).tolist(), values.tolist(), strict=True):
        if second < num_s:
            found[second][bucket_of_latency(value)] += 1
    return found


def _added(samples: Samples, side: _Side, second: int) -> Samples:
    return samples + Samples(
        begun=int(side.begun[second]),
        errors=int(side.errors[second]),
        refused=int(side.refused[second]),
        mute=int(side.mute[second]),
        ttft=side.ttft[second],
        itl=side.itl[second],
    )


def summary(name: str, runs: Sequence[Run]) -> dict[str, object]:
    """The row of one kind of version."""
    aborted = [run for run in runs if run.verdict.is_worse]
    reasons = Counter(run.verdict.criterion or Criterion.ERRORS for run in aborted)
    row: dict[str, object] = {"version": name, "rollouts": len(runs), "aborted": len(aborted)}
    if aborted:
        for quantity in ("seconds", "num_new", "num_old"):
            values = [asdict(replace(run, verdict=Verdict()))[quantity] for run in aborted]
            row[f"{quantity}_p50"], row[f"{quantity}_max"] = int(np.median(values)), max(values)
    return {**row, "by": {str(each): num for each, num in reasons.most_common()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, help="rollouts of each kind, instead of 500 good and 200 of each bad")
    runs = parser.parse_args().runs
    rows = [summary("is as good", [simulate(GOOD, seed) for seed in range(runs or 500)])]
    rows += [
        summary(name, [simulate(quality, 10_000 + seed) for seed in range(runs or 200)])
        for name, quality in BAD.items()
    ]
    print("| version | rollouts | aborted | seconds, median (largest) | its turns | the old one's turns | by |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        cells = [str(row["version"]), str(row["rollouts"]), str(row["aborted"])]
        for each in ("seconds", "num_new", "num_old"):
            cells.append(f"{row[f'{each}_p50']:,} ({row[f'{each}_max']:,})" if row["aborted"] else "–")
        by = row["by"]
        assert isinstance(by, dict)
        cells.append(", ".join(f"{criterion} {num}" for criterion, num in by.items()) or "–")
        print(f"| {' | '.join(cells)} |")
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
