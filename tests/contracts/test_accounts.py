"""The accounts' contract. A missing account has taken nothing; what beats for forgotten jobs brings them back."""

import asyncio
import math
import time
from dataclasses import replace
from typing import Any

import pytest

from axon.domain.tenants.account import Beat, Bound, Bounds, Budget, Entry, Round, Settlement, Standing
from axon.ports.live import Accounts, Live
from tests.contracts.backends import LiveBackend

TTL_S = 30.0
SLOW = Bounds(tokens_per_minute=60.0, requests_per_minute=60.0)
DAY = Budget(name="day", window=20261115, limit=100, seed=0)


@pytest.fixture
def accounts(live: Live) -> Accounts:
    return live.accounts


async def admit(accounts: Accounts, job_id: str, bounds: Bounds = SLOW, **entry: Any) -> Standing:
    return await accounts.admit("acme", Entry(**{"job_id": job_id, "ttl_s": TTL_S, **entry}), bounds)


async def beat(accounts: Accounts, *beats: Beat, bounds: Bounds = SLOW, ttl_s: float = TTL_S) -> Standing:
    [standing] = await accounts.beat([Round(account="acme", beats=beats, bounds=bounds, ttl_s=ttl_s)])
    return standing


async def settle(accounts: Accounts, job_id: str, used: float = 0, bounds: Bounds = SLOW, **how: Any) -> None:
    await accounts.settle([Settlement(account="acme", job_id=job_id, used=used, bounds=bounds, **how)])


async def look(accounts: Accounts, bounds: Bounds = SLOW) -> Standing:
    return await beat(accounts, bounds=bounds)


def check(standing: Standing, **expected: Any) -> None:
    """Its fields; a real server's time has passed, so that buckets may hold a little more."""
    for name, value in expected.items():
        assert getattr(standing, name) == (pytest.approx(value, abs=1) if isinstance(value, int | float) else value)


class TestRates:
    async def test_a_new_account_has_full_buckets(self, accounts: Accounts) -> None:
        standing = await look(accounts)
        check(standing, requests=60, tokens=60, jobs=0)

    async def test_an_admitted_job_takes_a_request_and_what_is_set_aside(self, accounts: Accounts) -> None:
        standing = await admit(accounts, "a", tokens=20)
        assert standing.refused is None
        check(standing, requests=59, tokens=40)

    async def test_a_refused_job_takes_nothing(self, accounts: Accounts) -> None:
        await admit(accounts, "a", tokens=50)
        standing = await admit(accounts, "b", tokens=30)
        assert standing.refused is Bound.TOKENS
        check(standing, requests=59, tokens=10, jobs=1)

    async def test_requests_run_out_one_by_one(self, accounts: Accounts) -> None:
        bounds = Bounds(requests_per_minute=3)
        refused = [(await admit(accounts, job_id, bounds)).refused for job_id in "abcd"]
        assert refused == [None, None, None, Bound.REQUESTS]

    async def test_a_bucket_fills_by_its_rate_and_no_further_than_its_size(
        self, lives: LiveBackend, accounts: Accounts
    ) -> None:
        bounds = Bounds(tokens_per_minute=6000)
        began = time.monotonic()
        await admit(accounts, "a", bounds, tokens=6000)
        await lives.pass_time(0.2)
        tokens = (await look(accounts, bounds)).tokens
        assert 15 < tokens < 25 + 100 * (time.monotonic() - began)  # 100 a second, on a slow machine too
        await settle(accounts, "a", bounds=bounds)
        assert (await look(accounts, bounds)).tokens == pytest.approx(6000)

    async def test_more_than_a_bucket_is_deep_sets_the_whole_bucket_aside(self, accounts: Accounts) -> None:
        assert (await admit(accounts, "a", tokens=1000)).tokens == pytest.approx(0, abs=1)

    async def test_a_job_that_is_in_sets_more_aside_and_counts_once(self, accounts: Accounts) -> None:
        await admit(accounts, "a")
        standing = await admit(accounts, "a", tokens=30)
        check(standing, requests=59, tokens=30, jobs=1)

    async def test_a_bucket_in_debt_lets_nobody_in(self, accounts: Accounts) -> None:
        await admit(accounts, "a", tokens=10)
        await settle(accounts, "a", used=100)
        assert (await look(accounts)).tokens == pytest.approx(-40, abs=1)
        assert (await admit(accounts, "b", least=1)).refused is Bound.TOKENS

    async def test_accounts_do_not_share(self, accounts: Accounts) -> None:
        await admit(accounts, "a", tokens=60)
        other = await accounts.admit("}other{", Entry(job_id="a", tokens=60, ttl_s=TTL_S), SLOW)
        assert other.refused is None


class TestJobs:
    async def test_no_more_jobs_come_in_than_may(self, accounts: Accounts) -> None:
        bounds = Bounds(jobs=2)
        assert [(await admit(accounts, each, bounds)).refused for each in "abc"] == [None, None, Bound.JOBS]
        await settle(accounts, "a", bounds=bounds)
        assert (await admit(accounts, "c", bounds)).refused is None

    async def test_those_that_wait_have_a_bound_of_their_own(self, accounts: Accounts) -> None:
        bounds = Bounds(waiting=1)
        await admit(accounts, "a", bounds)
        assert (await admit(accounts, "b", bounds)).refused is Bound.WAITING
        standing = await beat(accounts, Beat(job_id="a", waits=False), bounds=bounds)
        assert (standing.jobs, standing.waiting) == (1, 0)
        assert (await admit(accounts, "b", bounds)).refused is None

    async def test_work_is_what_jobs_have_left(self, accounts: Accounts) -> None:
        bounds = Bounds(work=100, waiting_work=50)
        await admit(accounts, "a", bounds, tokens=40)
        standing = await admit(accounts, "b", bounds, tokens=70)
        assert (standing.work, standing.waiting_work) == (110, 110)
        assert (await admit(accounts, "c", bounds)).refused is Bound.WORK
        standing = await beat(accounts, Beat(job_id="a", used=30, waits=False), bounds=bounds)
        assert (standing.work, standing.waiting_work, standing.waiting) == (80, 70, 1)
        assert (await admit(accounts, "c", bounds)).refused is Bound.WAITING_WORK
        await settle(accounts, "b", bounds=bounds)
        standing = await look(accounts, bounds)
        assert (standing.work, standing.waiting_work, standing.waiting) == (10, 0, 0)

    async def test_a_job_that_nobody_beats_for_lapses_and_gives_back_what_was_left(
        self, lives: LiveBackend, accounts: Accounts
    ) -> None:
        await admit(accounts, "a", tokens=50, ttl_s=0.1)
        await admit(accounts, "b", tokens=5)
        await lives.pass_time(0.2)
        standing = await look(accounts)
        check(standing, jobs=1, tokens=55, work=5)

    async def test_a_beat_keeps_a_job_in(self, lives: LiveBackend, accounts: Accounts) -> None:
        await admit(accounts, "a", tokens=50, ttl_s=0.1)
        await beat(accounts, Beat(job_id="a"))
        await lives.pass_time(0.2)
        assert (await look(accounts)).jobs == 1

    async def test_a_lapsed_job_that_comes_back_is_not_charged_for_the_same_tokens_again(
        self, lives: LiveBackend, accounts: Accounts
    ) -> None:
        bounds = replace(SLOW, budgets=(DAY,))
        await admit(accounts, "a", bounds, tokens=20)
        await beat(accounts, Beat(job_id="a", used=10), bounds=bounds, ttl_s=0.1)
        await lives.pass_time(0.2)
        standing = await beat(accounts, Beat(job_id="a", reserved=20, used=12), bounds=bounds)
        check(standing, jobs=1, spent={"day": 12}, tokens=48)

    async def test_two_hundred_at_once_on_a_limit_of_fifty_are_exactly_fifty(self, accounts: Accounts) -> None:
        for bounds in (Bounds(jobs=50), Bounds(requests_per_minute=50)):
            entries = [Entry(job_id=f"job{number}", ttl_s=TTL_S) for number in range(200)]
            name = f"acme{bounds.jobs}"
            began = time.monotonic()
            answers = await asyncio.gather(*(accounts.admit(name, entry, bounds) for entry in entries))
            num_refilled = math.floor((time.monotonic() - began) * bounds.requests_per_minute / 60)  # on a slow machine
            assert 50 <= sum(answer.refused is None for answer in answers) <= 50 + num_refilled


class TestUse:
    async def test_what_is_used_within_what_was_set_aside_takes_no_more(self, accounts: Accounts) -> None:
        await admit(accounts, "a", tokens=20)
        standing = await beat(accounts, Beat(job_id="a", used=15))
        assert standing.tokens == pytest.approx(40, abs=1)
        assert standing.reserved == {"a": 20}

    async def test_what_is_used_beyond_it_is_charged_at_once(self, accounts: Accounts) -> None:
        await admit(accounts, "a", tokens=20)
        assert (await beat(accounts, Beat(job_id="a", used=35))).tokens == pytest.approx(25, abs=1)
        assert (await beat(accounts, Beat(job_id="a", used=35))).tokens == pytest.approx(25, abs=1)

    async def test_more_is_set_aside_as_far_as_it_is_there(self, accounts: Accounts) -> None:
        await admit(accounts, "a", tokens=40)
        standing = await beat(accounts, Beat(job_id="a", more=15), Beat(job_id="b", more=15))
        assert standing.reserved["a"] == 55
        assert standing.reserved["b"] in (5, 6)
        assert 0 <= standing.tokens < 1

    async def test_without_a_rate_more_is_set_aside_for_the_asking(self, accounts: Accounts) -> None:
        standing = await beat(accounts, Beat(job_id="a", more=1000), bounds=Bounds())
        assert standing.reserved == {"a": 1000}

    async def test_settling_gives_back_what_was_not_used_and_charges_what_was_too_much(
        self, accounts: Accounts
    ) -> None:
        await admit(accounts, "a", tokens=30)
        await admit(accounts, "b", tokens=10)
        await settle(accounts, "a", used=12)
        assert (await look(accounts)).tokens == pytest.approx(38, abs=1)
        await settle(accounts, "b", used=20)
        assert (await look(accounts)).tokens == pytest.approx(28, abs=1)

    async def test_settling_twice_or_a_stranger_changes_nothing(self, accounts: Accounts) -> None:
        await admit(accounts, "a", tokens=30)
        for _ in range(3):
            await settle(accounts, "a", used=12)
        await settle(accounts, "stranger", used=12)
        standing = await look(accounts)
        check(standing, tokens=48, jobs=0, work=0)

    async def test_a_beat_that_comes_after_the_settling_brings_nothing_back(self, accounts: Accounts) -> None:
        await admit(accounts, "a", tokens=30)
        await settle(accounts, "a", used=12)
        standing = await beat(accounts, Beat(job_id="a", reserved=30, used=12))
        assert (standing.jobs, standing.reserved) == (0, {})
        standing = await beat(accounts, Beat(job_id="a", reserved=30, again=True))
        assert (standing.jobs, standing.reserved) == (1, {"a": 30})

    async def test_a_job_that_was_withdrawn_can_be_admitted_under_the_same_id(self, accounts: Accounts) -> None:
        await admit(accounts, "a", tokens=30)
        await settle(accounts, "a", uncounted=True)
        standing = await admit(accounts, "a", tokens=30)
        check(standing, jobs=1, requests=59, tokens=30)

    async def test_how_long_answers_are_is_learned(self, accounts: Accounts) -> None:
        assert (await look(accounts)).mean_output is None
        await admit(accounts, "a")
        await settle(accounts, "a", used=10, output=10, took_s=2.0)
        await admit(accounts, "b")
        await settle(accounts, "b", used=20, output=20, took_s=4.0)
        await admit(accounts, "c")
        await settle(accounts, "c")
        standing = await look(accounts)
        assert standing.mean_output == pytest.approx(11)
        assert standing.mean_s == pytest.approx(2.2)


async def test_what_is_set_aside_for_a_job_is_no_obstacle_when_it_asks_again(accounts: Accounts) -> None:
    bounds = replace(SLOW, tokens_per_minute=1000)
    for _ in range(2):
        standing = await admit(accounts, "a", bounds, tokens=700, least=450)
        assert standing.refused is None
    assert standing.tokens == pytest.approx(300, abs=5)
    assert (await admit(accounts, "b", bounds, least=450)).refused is Bound.TOKENS


class TestBudgets:
    async def test_an_account_that_does_not_know_what_was_used_says_so_and_lets_nobody_in(
        self, accounts: Accounts
    ) -> None:
        unseeded = Bounds(budgets=(replace(DAY, seed=None),))
        standing = await admit(accounts, "a", unseeded)
        assert (standing.unseeded, standing.jobs) == (("day",), 0)
        standing = await admit(accounts, "a", Bounds(budgets=(replace(DAY, seed=40),)))
        assert (standing.unseeded, standing.spent, standing.jobs) == ((), {"day": 40}, 1)
        assert (await admit(accounts, "b", unseeded)).jobs == 2

    async def test_a_seed_does_not_replace_what_is_known(self, accounts: Accounts) -> None:
        await admit(accounts, "a", Bounds(budgets=(replace(DAY, seed=40),)))
        assert (await admit(accounts, "b", Bounds(budgets=(replace(DAY, seed=0),)))).spent == {"day": 40}

    async def test_used_tokens_are_spent_once_and_a_spent_budget_lets_nobody_in(self, accounts: Accounts) -> None:
        bounds = Bounds(budgets=(DAY, Budget(name="month", window=202611, limit=1000, seed=50)))
        await admit(accounts, "a", bounds, tokens=500)
        await beat(accounts, Beat(job_id="a", used=30), bounds=bounds)
        assert (await beat(accounts, Beat(job_id="a", used=30), bounds=bounds)).spent == {"day": 30, "month": 80}
        await settle(accounts, "a", used=100, bounds=bounds)
        await settle(accounts, "a", used=100, bounds=bounds)
        standing = await admit(accounts, "b", bounds)
        assert (standing.refused, standing.spent) == (Bound.BUDGET, {"day": 100, "month": 150})

    async def test_what_is_set_aside_for_others_is_not_there_and_comes_back_with_what_they_did_not_use(
        self, accounts: Accounts
    ) -> None:
        bounds = Bounds(budgets=(DAY,))
        await admit(accounts, "a", bounds)
        await admit(accounts, "b", bounds)
        assert (await admit(accounts, "a", bounds, tokens=90, least=60)).refused is None
        assert (await admit(accounts, "a", bounds, tokens=95, least=60)).refused is None, "its own is no obstacle"
        assert (await admit(accounts, "b", bounds, tokens=20, least=6)).refused is Bound.BUDGET_HELD
        assert (await admit(accounts, "b", bounds, tokens=200, least=101)).refused is Bound.BUDGET
        assert (await admit(accounts, "b", bounds, tokens=20, least=5)).refused is None
        assert (await admit(accounts, "c", bounds, least=1)).refused is Bound.BUDGET_HELD
        await beat(accounts, Beat(job_id="a", used=60), bounds=bounds)
        assert (await admit(accounts, "c", bounds, least=1)).refused is Bound.BUDGET_HELD
        await settle(accounts, "a", used=60, bounds=bounds)
        assert (await admit(accounts, "c", bounds, tokens=30, least=20)).refused is None
        assert (await admit(accounts, "d", bounds, least=41)).refused is Bound.BUDGET

    async def test_a_new_day_begins_with_what_is_seeded_and_what_runs(self, accounts: Accounts) -> None:
        await admit(accounts, "a", Bounds(budgets=(DAY,)))
        await beat(accounts, Beat(job_id="a", used=30), bounds=Bounds(budgets=(DAY,)))
        tomorrow = replace(DAY, window=DAY.window + 1, seed=7)
        assert (await admit(accounts, "b", Bounds(budgets=(tomorrow,)))).spent == {"day": 37}

    async def test_a_new_day_does_not_count_who_has_lapsed_and_did_not_come_back(
        self, lives: LiveBackend, accounts: Accounts
    ) -> None:
        await admit(accounts, "a", Bounds(budgets=(DAY,)))
        await beat(accounts, Beat(job_id="a", used=30), bounds=Bounds(budgets=(DAY,)), ttl_s=0.1)
        await lives.pass_time(0.2)
        for day in (1, 2):
            later = replace(DAY, window=DAY.window + day, seed=7)
            assert (await admit(accounts, f"b{day}", Bounds(budgets=(later,)))).spent == {"day": 7}

    async def test_after_losing_everything_jobs_that_beat_are_in_again_with_what_they_used(
        self, lives: LiveBackend, accounts: Accounts
    ) -> None:
        bounds = replace(SLOW, budgets=(DAY,))
        await admit(accounts, "a", bounds, tokens=30)
        await lives.lose_everything()
        unseeded = replace(SLOW, budgets=(replace(DAY, seed=None),))
        standing = await beat(accounts, Beat(job_id="a", reserved=30, used=10), bounds=unseeded)
        assert (standing.jobs, standing.unseeded) == (1, ("day",))
        assert standing.tokens == pytest.approx(40, abs=1)
        standing = await look(accounts, replace(SLOW, budgets=(replace(DAY, seed=5),)))
        assert standing.spent == {"day": 15}
        await settle(accounts, "a", used=20, bounds=bounds)
        standing = await look(accounts, bounds)
        check(standing, spent={"day": 25}, tokens=50)
