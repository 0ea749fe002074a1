"""The engine's crashes: who caused them is found, and nobody else pays for it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axon.worker.job.trials import Trials

QUOTA = 8


@dataclass
class Engine:
    """Runs jobs as a worker lets it: all of them, or the suspect alone. Who is in it gains a token each step.

    A poisonous job kills it when it has gained ``poison[job]`` tokens in this life of the engine.
    """

    trials: Trials
    jobs: list[str]
    poison: dict[str, int] = field(default_factory=dict)
    guilty: list[str] = field(default_factory=list)
    cleared: list[str] = field(default_factory=list)
    num_crashes: int = 0

    def inside(self) -> list[str]:
        suspect = self.trials.suspect
        return self.jobs if suspect is None else [job for job in self.jobs if job == suspect]

    def life(self, steps: int) -> bool:
        """One life of so many steps, ended by poison or killed from outside: False when it ran through them."""
        gained = dict.fromkeys(self.inside(), 0)
        for _ in range(steps):
            if any(self.poison.get(job) == tokens for job, tokens in gained.items()):
                self.crash(gained)
                return True
            for job in list(gained):
                gained[job] += 1
                if self.trials.gained(job, gained[job]):
                    self.cleared.append(job)
            gained = {job: gained.get(job, 0) for job in self.inside()}  # who is cleared makes way for the next
        return False

    def crash(self, gained: dict[str, int]) -> None:
        self.num_crashes += 1
        for job in self.trials.crashed(gained):
            self.guilty.append(job)
            self.jobs.remove(job)

    def end(self, job: str) -> None:
        self.jobs.remove(job)
        self.trials.gone(job)


def names(count: int) -> list[str]:
    return [f"job{number}" for number in range(count)]


def make_engine(count: int, *, strike_limit: int = 2, poison: dict[str, int] | None = None) -> Engine:
    return Engine(Trials(strike_limit=strike_limit), names(count), poison or {})


def test_nobody_is_a_suspect_at_first() -> None:
    assert Trials(strike_limit=2).suspect is None


def test_an_engine_that_dies_empty_makes_no_suspects() -> None:
    trials = Trials(strike_limit=2)
    assert trials.crashed({}) == []
    assert trials.suspect is None


def test_those_in_the_engine_become_suspects_and_the_first_is_run_alone() -> None:
    engine = make_engine(3)
    engine.crash(dict.fromkeys(engine.jobs, 5))
    assert engine.inside() == ["job0"]


def test_a_suspect_that_gains_its_quota_is_cleared_and_the_next_is_tried() -> None:
    trials = Trials(strike_limit=2)
    trials.crashed({"a": 0, "b": 0})
    assert not trials.gained("a", QUOTA - 1)
    assert trials.gained("a", QUOTA)
    assert trials.suspect == "b"


def test_a_job_that_was_in_more_crashes_must_gain_more() -> None:
    trials = Trials(strike_limit=2)
    trials.crashed({"a": 1})
    trials.crashed({"a": 1})
    assert not trials.gained("a", QUOTA**2 - 1)
    assert trials.gained("a", QUOTA**2)
    assert trials.suspect is None


def test_who_is_not_on_trial_is_not_cleared() -> None:
    trials = Trials(strike_limit=2)
    trials.crashed({"a": 0, "b": 0})
    assert not trials.gained("b", 10**6)
    assert not trials.gained("somebody", 10**6)
    assert trials.suspect == "a"


def test_a_crash_in_company_is_no_strike() -> None:
    trials = Trials(strike_limit=1)
    assert trials.crashed({"a": 0, "b": 0}) == []


def test_a_gain_takes_back_earlier_strikes() -> None:
    trials = Trials(strike_limit=2)
    assert trials.crashed({"a": 0}) == []
    assert trials.crashed({"a": 1}) == []
    assert trials.crashed({"a": 0}) == []
    assert trials.crashed({"a": 0}) == ["a"]


def test_a_guilty_job_is_no_suspect_any_more() -> None:
    trials = Trials(strike_limit=1)
    trials.crashed({"a": 0, "b": 0})
    assert trials.crashed({"a": 0}) == ["a"]
    assert trials.suspect == "b"


def test_a_suspect_that_leaves_makes_way_for_the_next() -> None:
    trials = Trials(strike_limit=2)
    trials.crashed({"a": 0, "b": 0})
    trials.gone("a")
    trials.gone("a")
    assert trials.suspect == "b"


@pytest.mark.parametrize("strike_limit", [1, 2, 3])
@settings(deadline=None)
@given(count=st.integers(1, 30), place=st.integers(0, 29))
def test_a_poison_at_its_first_step_is_found_after_one_crash_more_than_the_strikes_it_takes(
    strike_limit: int, count: int, place: int
) -> None:
    bad = f"job{place % count}"
    engine = make_engine(count, strike_limit=strike_limit, poison={bad: 0})
    for _ in range(strike_limit + 1):
        if not engine.guilty:
            assert engine.life(QUOTA * (count + 1))
    assert engine.guilty == [bad]


@settings(deadline=None)
@given(count=st.integers(1, 12), bad=st.sets(st.integers(0, 11), min_size=1), strike_limit=st.integers(1, 3))
def test_every_poison_among_many_is_found_and_everybody_else_is_cleared(
    count: int, bad: set[int], strike_limit: int
) -> None:
    poison = {f"job{number % count}": 0 for number in bad}
    engine = make_engine(count, strike_limit=strike_limit, poison=poison)
    while engine.life(QUOTA * (count + 1)):
        assert engine.num_crashes <= len(poison) * strike_limit + 1
    assert set(engine.guilty) == set(poison)
    assert len(engine.guilty) == len(poison)
    assert engine.trials.suspect is None
    assert engine.jobs == [job for job in names(count) if job not in poison]


lives = st.lists(st.integers(1, 40), max_size=25)


@settings(deadline=None)
@given(count=st.integers(1, 6), lives=lives, strike_limit=st.integers(1, 3))
def test_jobs_that_gain_tokens_are_never_guilty_however_often_the_engine_is_killed(
    count: int, lives: Iterable[int], strike_limit: int
) -> None:
    engine = make_engine(count, strike_limit=strike_limit)
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
    for _ in range(count):
        if (suspect := engine.trials.suspect) is not None:
            assert suspect in engine.jobs  # somebody can always be run: else all would wait for ever
            assert engine.trials.gained(suspect, QUOTA**4)
    assert engine.trials.suspect is None
    assert engine.inside() == engine.jobs
