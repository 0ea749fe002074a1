"""Budgets of a day and a month: begun with the records, spent, and found again after a loss."""

from datetime import UTC, datetime

import pytest

from axon.admission.admission import Pulse
from axon.admission.ticket import window_start, windows
from axon.errors import BudgetSpent, DependencyDown, LimitReached
from axon.runtime.clock import FakeClock
from tests.admission.door import make_door


class TestBudgets:
    async def test_a_budget_begins_with_what_the_records_say_and_is_looked_up_once(self) -> None:
        clock = FakeClock()
        door = make_door(tokens_per_day=1000, tokens_per_month=5000, clock=clock)
        door.records.used["acme"] = 400
        await door.enter("job1")
        await door.enter("job2")
        day, month = windows(clock.now())
        assert door.records.asked == [
            ("acme", window_start("day", day)),
            ("acme", window_start("month", month)),
        ]
        assert (await door.look("tenant/acme")).spent == {"day": 400, "month": 400}

    async def test_a_spent_budget_is_no_matter_of_waiting(self) -> None:
        door = make_door(tokens_per_day=1000)
        door.records.used["acme"] = 900
        job = await door.enter("job1", prompt=50)
        await door.enter("job2", prompt=50)
        await door.admission.settle(job, used=100)
        with pytest.raises(BudgetSpent) as refused:
            await door.enter("job3")
        assert (refused.value.code, refused.value.retryable) == ("insufficient_quota", False)

    async def test_a_burst_is_let_in_as_far_as_the_budget_goes(self) -> None:
        door = make_door(tokens_per_day=1000)
        for number in range(10):
            await door.enter(f"job{number}", prompt=45, output=50)
        await door.enter("the last", prompt=45, output=500)
        with pytest.raises(LimitReached) as refused:
            await door.enter("too late")
        assert (refused.value.code, refused.value.retryable) == ("budget_reserved", True)

    async def test_a_prompt_that_the_budget_cannot_pay_is_refused_whole(self) -> None:
        door = make_door(tokens_per_day=1000)
        with pytest.raises(BudgetSpent) as refused:
            await door.enter("job", prompt=1000, output=50)
        assert "1000 are left" in str(refused.value)
        assert "at least 1001" in str(refused.value)
        await door.enter("job", prompt=999, output=50)

    async def test_a_new_day_has_a_budget_of_its_own(self) -> None:
        clock = FakeClock(datetime(2026, 2, 28, 23, 0, tzinfo=UTC).timestamp())
        door = make_door(tokens_per_day=100, tokens_per_month=1000, clock=clock)
        await door.admission.settle(await door.enter("job1"), used=100)
        with pytest.raises(BudgetSpent):
            await door.enter("job2")
        clock.advance(3600)
        await door.enter("job2")

    async def test_a_running_job_is_told_when_its_budget_is_spent(self) -> None:
        door = make_door(tokens_per_month=100)
        job = await door.enter("job1", prompt=10, output=500)
        allowed = await door.admission.beat([Pulse(job=job, used=99)])
        assert allowed[job.id].spent == ""
        allowed = await door.admission.beat([Pulse(job=job, used=100)])
        assert allowed[job.id].spent == "month"

    async def test_after_everything_was_lost_running_jobs_and_the_records_make_up_the_budget_again(self) -> None:
        door = make_door(tokens_per_day=1000)
        job = await door.enter("job1", prompt=10)
        await door.admission.beat([Pulse(job=job, used=60)])
        door.accounts.lose_everything()
        door.records.used["acme"] = 300
        await door.admission.beat([Pulse(job=job, used=70)])
        assert (await door.look("tenant/acme")).spent == {"day": 370}

    async def test_while_nobody_knows_what_was_used_nobody_is_let_in(self) -> None:
        door = make_door(tokens_per_day=1000)
        door.records.away = True
        with pytest.raises(DependencyDown):
            await door.enter("job1")
        door.records.away = False
        await door.enter("job1")
