"""The work that comes in, from what was taken and what waits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.scaling.intake import Intake, Taken
from axon.domain.scaling.work import Work
from axon.domain.tenants.tenant import Tier


def taken(jobs: float, prompt: float = 100.0, answer: float = 50.0) -> Taken:
    return Taken(jobs=jobs, work=Work(prompt=jobs * prompt, answer=jobs * answer))


def test_what_was_taken_and_what_waits_longer_came_in() -> None:
    _, intake = Intake().look(0.0, taken(0), 0)
    came, intake = intake.look(2.0, taken(10), 4)
    assert (came.prompt, came.answer) == (700.0, 350.0)
    came, intake = intake.look(4.0, taken(14), 0)
    assert (came.prompt, came.answer) == (0.0, 0.0)


def test_the_first_look_of_a_leader_says_nothing_came() -> None:
    came, intake = Intake().look(5.0, taken(1_000_000), 500)
    assert came.tokens == 0.0
    assert intake.job.prompt == pytest.approx(100.0)


def test_the_backlog_is_split_by_tier_and_counts_jobs_by_the_mean() -> None:
    _, intake = Intake().look(0.0, taken(10), 0)
    backlog = intake.backlog({Tier.PRIORITY: 2, Tier.FLEX: 5, Tier.DEFAULT: 0})
    assert backlog == {Tier.PRIORITY: Work(prompt=200.0, answer=100.0), Tier.FLEX: Work(prompt=500.0, answer=250.0)}


def test_prompts_that_wait_in_their_workers_are_backlog_of_the_default_tier() -> None:
    _, intake = Intake().look(0.0, taken(10), 0)
    backlog = intake.backlog({Tier.FLEX: 1}, pending=Work(prompt=70.0))
    assert backlog == {Tier.FLEX: Work(prompt=100.0, answer=50.0), Tier.DEFAULT: Work(prompt=70.0)}


def test_the_mean_job_follows_a_change_of_traffic() -> None:
    intake = Intake().look(0.0, taken(1000), 0)[1]
    later = Taken(jobs=11_000, work=Work(prompt=100_000 + 10_000 * 900.0, answer=50_000 + 10_000 * 10.0))
    job = intake.look(60.0, later, 0)[1].job
    assert job.prompt == pytest.approx(900.0, rel=0.01)
    assert job.answer == pytest.approx(10.0, rel=0.01)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=2, max_size=30))
def test_no_work_is_lost_or_made_up_over_many_looks(steps: list[tuple[int, int]]) -> None:
    intake, jobs, waiting, total = Intake().look(0.0, taken(1), 0)[1], 1.0, 0, 0.0
    for second, (took, waits) in enumerate(steps, start=1):
        jobs += max(took, waiting - waits)  # what no longer waits was taken
        came, intake = intake.look(float(second), taken(jobs), waits)
        waiting, total = waits, total + came.prompt
    assert total == pytest.approx(100.0 * (jobs - 1 + waiting))
