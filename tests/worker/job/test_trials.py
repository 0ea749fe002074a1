"""The engine's crashes: who caused them is found by halves, and nobody else pays for it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from axon.worker.job.trials import Trials, halves

QUOTA = 8
LIMIT = 3


@dataclass
class Engine:
    """Runs jobs as a worker lets it: all of them, or those on trial. Who is in it gains a token each step.

    A poisonous job kills it when it has gained ``poison[job]`` tokens in this life of the engine.
    """

    trials: Trials
    jobs: list[str]
    poison: dict[str, int] = field(default_factory=dict)
    guilty: list[str] = field(default_factory=list)
    mute: set[str] = field(default_factory=set)
    """Jobs that have never gained a token."""
    num_crashes: int = 0

    def inside(self) -> list[str]:
        return [job for job in self.jobs if self.trials.may_run(job)]

    def life(self, steps: int) -> bool:
        """One life of so many steps, ended by poison or killed from outside: False when it ran through them."""
        gained = dict.fromkeys(self.inside(), 0)
        for _ in range(steps):
            if any(self.poison.get(job) == tokens for job, tokens in gained.items()):
                self.crash(gained)
                return True
            for job in list(gained):
                gained[job] += 1
                self.mute.discard(job)
                self.trials.gained(job, gained[job])
            gained = {job: gained.get(job, 0) for job in self.inside()}  # who is cleared makes way for the next
        return False

    def crash(self, gained: dict[str, int]) -> None:
        self.num_crashes += 1
        for job in self.trials.crashed(gained, mute=self.mute):
            self.guilty.append(job)
            self.jobs.remove(job)

    def end(self, job: str) -> None:
        self.jobs.remove(job)
        self.trials.gone(job)


def names(count: int) -> list[str]:
    return [f"job{number}" for number in range(count)]


def make_engine(count: int, *, poison: dict[str, int] | None = None, mute: Iterable[str] = ()) -> Engine:
    return Engine(Trials(strike_limit=LIMIT), names(count), poison or {}, mute=set(mute))


def crashed_twice(*job_ids: str, mute: Iterable[str] = ()) -> Trials:
    trials = Trials(strike_limit=LIMIT)
    for _ in range(2):
        assert trials.crashed(dict.fromkeys(job_ids, 1), mute=set(mute)) == []
    return trials


def test_nobody_is_a_suspect_at_first() -> None:
    assert Trials(strike_limit=LIMIT).on_trial == ()


def test_an_engine_that_dies_empty_makes_no_suspects() -> None:
    trials = Trials(strike_limit=LIMIT)
    assert trials.crashed({}) == []
    assert trials.on_trial == ()


def test_one_crash_is_counted_and_keeps_nobody_from_running_beside_others() -> None:
    engine = make_engine(3)
    engine.crash(dict.fromkeys(engine.jobs, 5))
    assert engine.inside() == engine.jobs
    assert [engine.trials.crashes(job) for job in [*engine.jobs, "somebody"]] == [1, 1, 1, 0]


def test_after_two_crashes_one_half_has_the_engine_for_itself() -> None:
    assert crashed_twice(*"abcdef").on_trial == ("a", "b", "c")


def test_of_a_few_suspects_one_at_a_time_is_tried() -> None:
    trials = crashed_twice(*"abcd")
    for job_id in "abc":
        assert trials.on_trial == (job_id,)
        assert trials.gained(job_id, QUOTA)
    assert trials.on_trial == ("d",)


def test_a_job_that_comes_with_two_crashes_is_tried_in_an_engine_with_nothing_else() -> None:
    trials = Trials(strike_limit=LIMIT)
    assert not trials.took("a", crashes=1, is_mute=True)
    assert trials.took("b", crashes=2, is_mute=True)
    assert (trials.may_run("a"), trials.may_run("b")) == (False, True)


def test_suspects_that_come_while_others_are_tried_wait_and_are_tried_together() -> None:
    trials = Trials(strike_limit=LIMIT)
    for job_id in ("a", "b", "c"):
        trials.took(job_id, crashes=2, is_mute=False)
    assert list(trials.on_trial) == ["a"]
    assert trials.gained("a", QUOTA)
    assert list(trials.on_trial) == ["b", "c"]


def test_another_attempt_of_the_same_worker_counts_no_crash_again() -> None:
    trials = crashed_twice("a")
    assert not trials.took("a", crashes=2, is_mute=False)
    assert trials.crashes("a") == 2


def test_a_half_is_cleared_when_all_of_it_have_gained_their_quota_and_the_culprit_is_in_the_other() -> None:
    trials = crashed_twice(*"abcdef")
    assert not trials.gained("a", QUOTA)
    assert not trials.gained("b", QUOTA - 1)
    assert not trials.gained("c", QUOTA)
    assert trials.gained("b", QUOTA)
    assert trials.on_trial == ("d",)  # the others are not tried together: one of them would crash the engine


def test_a_half_that_crashes_clears_the_other() -> None:
    trials = crashed_twice(*"abcdef")
    assert trials.crashed({"a": 0, "b": 0, "c": 0}) == []
    assert trials.on_trial == ("a",)
    assert [each for each in "abcdef" if trials.is_suspect(each)] == ["a", "b", "c"]


def crashed_at_a_prompt(*, running: Iterable[str], mute: Iterable[str]) -> Trials:
    """Twice, with jobs that had gained tokens and, newer than they, jobs that never gained one."""
    trials = Trials(strike_limit=LIMIT)
    for _ in range(2):
        assert trials.crashed({**dict.fromkeys(running, 1), **dict.fromkeys(mute, 0)}, mute=set(mute)) == []
    return trials


def test_those_that_have_gained_tokens_run_at_once_and_together_and_the_others_after_them() -> None:
    trials = crashed_at_a_prompt(running="abcdef", mute="gh")
    assert trials.on_trial == tuple("abcdef")
    for job_id in "abcdef":
        trials.gained(job_id, QUOTA)
    assert trials.on_trial == ("h",)


def test_of_those_that_have_never_gained_a_token_the_newest_is_tried_first() -> None:
    trials = crashed_at_a_prompt(running="", mute="abcd")
    assert trials.on_trial == ("d",)
    assert trials.gained("d", QUOTA)
    assert trials.on_trial == ("c",)


def test_a_job_counts_as_one_that_gained_tokens_if_it_had_one_by_the_second_crash() -> None:
    assert crashed_twice(*"abcdef", mute=["f"]).on_trial == ("a", "b", "c")


def test_of_many_that_have_never_gained_a_token_the_older_half_is_tried_first() -> None:
    trials = crashed_at_a_prompt(running="a", mute="bcdefg")
    assert list(trials.on_trial) == ["a"]
    assert trials.gained("a", QUOTA)
    assert list(trials.on_trial) == ["b", "c", "d"]
    for job_id in "bcd":
        trials.gained(job_id, QUOTA)
    assert list(trials.on_trial) == ["g"]


def test_a_cleared_job_runs_beside_others_until_the_next_crash() -> None:
    trials = crashed_twice("a")
    assert trials.gained("a", QUOTA**3)
    assert (trials.on_trial, trials.crashes("a")) == ((), 1)
    trials.crashed({"a": 1, "b": 1})
    assert trials.on_trial == ("a",)


def test_a_job_that_crashed_alone_more_often_must_gain_more() -> None:
    trials = crashed_twice("a")
    assert not trials.gained("a", QUOTA**3 - 1)
    assert trials.gained("a", QUOTA**3)


def test_who_is_not_on_trial_is_not_cleared() -> None:
    trials = crashed_twice("a", "b")
    assert not trials.gained("b", 10**6)
    assert not trials.gained("somebody", 10**6)
    assert trials.on_trial == ("a",)


def test_a_crash_in_company_convicts_nobody_however_often() -> None:
    trials = Trials(strike_limit=1)
    for _ in range(5):
        assert trials.crashed({"a": 0, "b": 0}) == []


def test_a_job_that_comes_from_two_crashes_elsewhere_is_guilty_of_the_third_alone() -> None:
    trials = Trials(strike_limit=LIMIT)
    trials.took("a", crashes=2, is_mute=True)
    assert trials.crashed({"a": 0}) == ["a"]


def test_a_job_that_gains_a_token_is_not_guilty() -> None:
    trials = Trials(strike_limit=LIMIT)
    for _ in range(5):
        assert trials.crashed({"a": 1}) == []
    assert trials.crashed({"a": 0}) == ["a"]


def test_a_verdict_explains_the_crashes_of_all_others() -> None:
    trials = crashed_twice(*"abcd")
    assert trials.crashed({"a": 0}) == ["a"]
    assert trials.on_trial == ()
    assert [trials.crashes(each) for each in "abcd"] == [0, 1, 1, 1]


def test_a_suspect_that_leaves_makes_way_for_the_next() -> None:
    trials = crashed_twice("a", "b")
    assert trials.gone("a")
    assert not trials.gone("a")
    assert trials.on_trial == ("b",)


def test_the_last_of_a_half_to_leave_clears_those_that_have_gained_their_quota() -> None:
    trials = crashed_twice("a", "b", "c")
    trials.took("late", crashes=2, is_mute=False)
    trials.gone("a")
    assert list(trials.on_trial) == ["b", "c"]  # the culprit may be gone: the others are tried together
    assert not trials.gained("b", QUOTA)
    assert trials.gone("c")
    assert list(trials.on_trial) == ["late"]


@given(suspects=st.lists(st.integers(), min_size=2, unique=True), data=st.data())
def test_halves_share_out_all_suspects_and_neither_is_empty(suspects: list[int], data: st.DataObject) -> None:
    jobs = [f"job{number}" for number in suspects]
    mute = data.draw(st.sets(st.sampled_from(jobs)))
    first, second = halves(jobs, mute)
    assert first
    assert second
    assert sorted(first + second) == sorted(jobs)
    if 0 < len(mute) < len(jobs):
        assert list(first) == [job for job in jobs if job not in mute]
        assert list(second) == [job for job in jobs if job in mute]
    else:
        assert len(first) <= len(jobs) / 2


@settings(deadline=None)
@given(count=st.integers(1, 64), place=st.integers(0, 63), mute=st.sets(st.integers(0, 63)))
def test_a_poison_among_many_is_found_after_a_number_of_crashes_that_grows_with_the_logarithm(
    count: int, place: int, mute: set[int]
) -> None:
    bad = f"job{place % count}"
    engine = make_engine(count, poison={bad: 0}, mute={f"job{each % count}" for each in mute})
    while engine.life(QUOTA * (count + 3)):
        assert engine.num_crashes <= max(LIMIT, 3 + math.ceil(math.log2(count)))
    assert engine.guilty == [bad]
    assert engine.inside() == engine.jobs


@settings(deadline=None)
@given(count=st.integers(2, 64), num_mute=st.integers(1, 64))
def test_a_poison_that_comes_to_others_of_which_some_run_is_found_at_its_third_crash(count: int, num_mute: int) -> None:
    bad = f"job{count - 1}"
    engine = make_engine(count, poison={bad: 0}, mute=names(count)[-num_mute:])
    engine.crash({job: 0 if job in engine.mute else 5 for job in engine.jobs})
    while engine.life(QUOTA * (count + 3)):
        pass
    assert (engine.guilty, engine.num_crashes) == ([bad], LIMIT)


@settings(deadline=None)
@given(count=st.integers(1, 12), bad=st.sets(st.integers(0, 11), min_size=1))
def test_every_poison_among_many_is_found_and_everybody_else_is_cleared(count: int, bad: set[int]) -> None:
    poison = {f"job{number % count}": 0 for number in bad}
    engine = make_engine(count, poison=poison, mute=names(count))
    while engine.life(QUOTA * (count + 3)):
        assert engine.num_crashes <= len(poison) * (3 + math.ceil(math.log2(count + 1)))
    assert set(engine.guilty) == set(poison)
    assert len(engine.guilty) == len(poison)
    assert engine.trials.on_trial == ()
    assert engine.jobs == [job for job in names(count) if job not in poison]


lives = st.lists(st.integers(1, 40), max_size=25)


@settings(deadline=None)
@given(count=st.integers(1, 6), lives=lives)
def test_jobs_that_gain_tokens_are_never_guilty_however_often_the_engine_is_killed(
    count: int, lives: Iterable[int]
) -> None:
    engine = make_engine(count)
    for steps in lives:
        engine.life(steps)
        engine.crash(dict.fromkeys(engine.inside(), steps))
    assert engine.guilty == []


@settings(deadline=None)
@given(count=st.integers(1, 6), lives=lives, leaving=st.lists(st.integers(0, 5), max_size=6))
def test_every_suspect_leaves_or_is_cleared_once_the_killing_stops(
    count: int, lives: list[int], leaving: list[int]
) -> None:
    engine = make_engine(count)
    for steps in lives[:4]:
        engine.crash(dict.fromkeys(engine.inside(), steps))
    for number in leaving:
        if f"job{number}" in engine.jobs:
            engine.end(f"job{number}")
    for _ in range(2 * count):
        assert set(engine.trials.on_trial) <= set(engine.jobs)  # somebody can always be run: else all would wait
        for job in engine.trials.on_trial:
            engine.trials.gained(job, QUOTA**4)
    assert engine.trials.on_trial == ()
    assert engine.inside() == engine.jobs
