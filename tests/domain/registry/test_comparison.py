"""The comparison of two versions: what counts as worse, and how often it is wrong over many simulated rollouts."""

from dataclasses import replace
from math import exp, log

import pytest
from benchmarks.rollouts import BAD, GOOD, simulate
from hypothesis import given, settings
from hypothesis import strategies as st

from axon.domain.registry import comparison
from axon.domain.registry.comparison import Criterion, Evidence, Table, Verdict, looked, verdict_of
from axon.domain.registry.samples import Observed, Samples, bucket_of_latency
from axon.domain.registry.tolerance import Tolerance
from tests.long import whole

TOLERANCE = Tolerance()


def latencies(seconds: float, num: int) -> dict[int, int]:
    """So many latencies, spread evenly from half to twice this."""
    found: dict[int, int] = {}
    for index in range(num):
        bucket = bucket_of_latency(seconds * 2 ** (2 * (index + 0.5) / num - 1))
        found[bucket] = found.get(bucket, 0) + 1
    return found


def verdict_after(block: Observed, num_blocks: int, tolerance: Tolerance = TOLERANCE) -> Verdict:
    """The verdict after so many blocks that are all alike."""
    evidence, observed = looked(Evidence(), Observed(), tolerance), Observed()
    for _ in range(num_blocks):
        observed += block
        evidence = looked(evidence, observed, tolerance)
    return verdict_of(evidence, tolerance, old="small@v1", new="small@v2")


def block(*, old: Samples | None = None, new: Samples | None = None) -> Observed:
    plain = Samples(begun=10, ttft=latencies(0.4, 10), itl=latencies(0.02, 10))
    return Observed(old=old or plain, new=new or plain)


PLAIN = block().old


class TestVerdict:
    def test_nothing_is_said_before_anything_was_seen(self) -> None:
        assert verdict_of(Evidence(), TOLERANCE, old="a", new="b") == Verdict()

    def test_a_version_that_is_as_good_is_not_worse(self) -> None:
        assert verdict_after(block(), 1000) == Verdict()

    def test_a_version_that_is_better_is_not_worse(self) -> None:
        bad = replace(PLAIN, errors=5, mute=2, ttft=latencies(4.0, 10))
        assert verdict_after(block(old=bad), 100) == Verdict()

    @pytest.mark.parametrize(
        ("criterion", "bad", "moves"),
        [
            (Criterion.ERRORS, replace(PLAIN, errors=5), True),
            (Criterion.MUTE, replace(PLAIN, mute=5), True),
            (Criterion.REFUSALS, replace(PLAIN, refused=5), False),
            (Criterion.TTFT, replace(PLAIN, ttft=latencies(0.8, 10)), False),
            (Criterion.ITL, replace(PLAIN, itl=latencies(0.04, 10)), False),
        ],
    )
    def test_a_version_that_is_worse_by_one_criterion_is_worse(
        self, criterion: Criterion, bad: Samples, moves: bool
    ) -> None:
        verdict = verdict_after(block(new=bad), 100)
        assert (verdict.criterion, verdict.is_worse, verdict.moves) == (criterion, True, moves)
        assert "small@v2" in verdict.reason
        assert "small@v1" in verdict.reason

    def test_the_reason_has_the_figures(self) -> None:
        verdict = verdict_after(block(new=replace(PLAIN, errors=5)), 100)
        assert verdict.reason.startswith("small@v2 errs: 500 of 1,000 turns (50.0%) against 0 of 1,000 (0.0%)")
        assert verdict.reason.endswith("of small@v1; evidence above 1,000,000 to 1")
        slower = verdict_after(block(new=replace(PLAIN, ttft=latencies(0.8, 10))), 100)
        assert slower.reason.startswith("small@v2 is slower: median time to first token 0.7")

    def test_too_few_samples_hold_the_step_and_abort_nothing(self) -> None:
        few = verdict_after(block(new=replace(PLAIN, errors=10)), 19)
        assert (few.is_worse, few.is_in_doubt) == (False, True)
        assert verdict_after(block(new=replace(PLAIN, errors=10)), 20).is_worse

    def test_a_little_slower_is_tolerated(self) -> None:
        assert verdict_after(block(new=replace(PLAIN, ttft=latencies(0.48, 10))), 1000) == Verdict()

    def test_a_difference_that_is_too_small_to_matter_is_tolerated(self) -> None:
        thousands = block(old=replace(PLAIN, begun=1000), new=replace(PLAIN, begun=1000, errors=5))
        assert verdict_after(thousands, 200) == Verdict()
        assert verdict_after(thousands, 200, Tolerance(excess=0.001)).is_worse

    def test_what_both_have_is_nobodys_fault(self) -> None:
        both = replace(PLAIN, errors=8, mute=3, refused=20, ttft=latencies(9.0, 10))
        assert verdict_after(block(old=both, new=both), 1000) == Verdict()

    def test_a_version_alone_is_compared_with_nothing(self) -> None:
        alone = Observed(new=replace(PLAIN, errors=10))
        assert verdict_after(alone, 1000) == Verdict()


class TestEvidence:
    def test_the_first_look_only_sets_the_mark(self) -> None:
        seen = looked(Evidence(), Observed(new=Samples(begun=50, errors=50), old=Samples(begun=50)), TOLERANCE)
        assert not seen.logs

    def test_a_block_goes_on_until_both_versions_have_a_few_turns(self) -> None:
        begun = looked(Evidence(), Observed(), TOLERANCE)
        assert looked(begun, Observed(old=Samples(begun=90), new=Samples(begun=3, errors=3)), TOLERANCE) is begun
        assert looked(begun, Observed(old=Samples(begun=90), new=Samples(begun=4, errors=4)), TOLERANCE).logs

    def test_failures_of_turns_that_began_before_the_block_are_counted_in_the_next(self) -> None:
        evidence = looked(Evidence(), Observed(), TOLERANCE)
        late = Observed(old=Samples(begun=10), new=Samples(begun=4, errors=6))
        evidence = looked(evidence, late, TOLERANCE)
        assert evidence.late[Criterion.ERRORS] == (2, 0)
        evidence = looked(evidence, late + Observed(old=Samples(begun=10), new=Samples(begun=4)), TOLERANCE)
        assert evidence.late[Criterion.ERRORS] == (0, 0)

    @given(
        new=st.integers(1, 12), old=st.integers(1, 12), bad=st.integers(0, 24), tolerated=st.sampled_from([1.0, 1.5, 3])
    )
    @settings(max_examples=100)
    def test_the_expected_likelihood_ratio_is_at_most_one(self, new: int, old: int, bad: int, tolerated: float) -> None:
        """The supermartingale property, over all outcomes of a table with these margins, at the tolerated odds ratio
        and below it."""
        bad = min(bad, new + old)
        support = range(max(0, bad - old), min(new, bad) + 1)
        for odds in (tolerated, tolerated / 2, 0.0):
            weights = [
                exp(comparison._log_choose(new, x) + comparison._log_choose(old, bad - x)) * odds**x for x in support
            ]
            total = sum(weights)
            if total == 0:
                continue
            tables = [Table(new_bad=x, new=new, old_bad=bad - x, old=old) for x in support]
            for index in range(len(comparison._RATIOS)):
                ratios = [exp(comparison._log_ratios(table, tolerated)[index]) for table in tables]
                mean = sum(weight * ratio for weight, ratio in zip(weights, ratios, strict=True)) / total
                assert mean <= 1 + 1e-9

    def test_the_mixture_is_the_mean_of_the_ratios(self) -> None:
        assert comparison._log_mean((log(1.0), log(3.0))) == pytest.approx(log(2.0))


@pytest.mark.timeout(3600)
class TestSimulatedRollouts:
    """``python -m benchmarks.rollouts`` makes the table of docs/rollouts.md from the same simulation."""

    def test_fewer_than_one_in_a_hundred_good_versions_is_aborted(self) -> None:
        num = 500 if whole() else 20
        aborted = [seed for seed in range(num) if simulate(GOOD, seed).verdict.is_worse]
        assert len(aborted) < max(1.0, num / 100)

    @pytest.mark.parametrize("kind", BAD)
    def test_every_bad_version_is_aborted_for_the_right_reason(self, kind: str) -> None:
        runs = [simulate(BAD[kind], 10_000 + seed) for seed in range(200 if whole() else 8)]
        assert all(run.verdict.is_worse for run in runs)
        assert all(min(run.num_new, run.num_old) >= TOLERANCE.min_samples for run in runs)
        latency = kind == "is 2× slower"
        assert all((run.verdict.criterion in (Criterion.TTFT, Criterion.ITL)) is latency for run in runs)
