"""Admission: limits are the tenant's, what was set aside comes back once, an accepted turn is never refused again."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axon.adapters.live.memory_accounts import MemoryAccounts
from axon.admission.admission import Admission, Entrant, Pulse
from axon.admission.config import AdmissionConfig
from axon.admission.limits import FIRST_OUTPUT
from axon.admission.meters import Meter, Meters
from axon.admission.place import Place
from axon.admission.ticket import Ticket, window_start, windows
from axon.domain.account import Bounds, Round, Standing
from axon.domain.job import Job
from axon.domain.sampling import Sampling
from axon.domain.tenant import Terms
from axon.errors import AxonError, BudgetSpent, DependencyDown, LimitReached, Overloaded
from axon.runtime.clock import FakeClock
from tests.contracts.builders import make_job

TTL_S = 60.0


@dataclass
class Records:
    """What ended turns used, as the store has it."""

    used: dict[str, int] = field(default_factory=dict)
    asked: list[tuple[str, float]] = field(default_factory=list)
    away: bool = False

    async def __call__(self, tenant: str, *, since: float) -> int:
        if self.away:
            raise DependencyDown("the store is away")
        self.asked.append((tenant, since))
        return self.used.get(tenant, 0)


@dataclass
class Door:
    """An admission on accounts whose time we hold."""

    terms: Terms = field(default_factory=Terms)
    total: int = 1000
    clock: FakeClock = field(default_factory=FakeClock)
    records: Records = field(default_factory=Records)

    def __post_init__(self) -> None:
        self.accounts = MemoryAccounts(self.clock)
        config = AdmissionConfig(backlog_total=self.total, ticket_s=TTL_S)
        self.admission = Admission(self.accounts, config, self.clock, spending=self.records)
        self.meters = Meters()

    async def look(self, account: str) -> Standing:
        bounds = Bounds(
            tokens_per_minute=self.terms.tokens_per_minute, requests_per_minute=self.terms.requests_per_minute
        )
        [standing] = await self.accounts.beat([Round(account=account, beats=(), bounds=bounds, ttl_s=1.0)])
        return standing

    async def tokens_left(self, tenant: str = "acme") -> float:
        return (await self.look(f"tenant/{tenant}")).tokens

    async def backlog(self, tenant: str = "acme") -> tuple[int, int]:
        """Of the tenant, and of all."""
        return (await self.look(f"tenant/{tenant}")).jobs, (await self.look("fleet/small/")).jobs

    async def admit(self, job_id: str, *, tenant: str = "acme", num_bytes: int = 0) -> Ticket:
        entrant = Entrant(job_id=job_id, tenant=tenant, terms=self.terms, deployment="small", num_bytes=num_bytes)
        return await self.admission.admit(entrant, self.meters)

    async def enter(self, job_id: str, *, prompt: int = 3, output: int = 0, tenant: str = "acme") -> Job:
        """A job that sets prompt and output aside: no answer is known yet, so that its most counts."""
        ticket = await self.admit(job_id, tenant=tenant)
        job = make_job(
            job_id,
            tenant=tenant,
            prompt_ids=tuple(range(prompt)),
            sampling=Sampling(max_tokens=output),
            created=self.clock.now(),
        )
        return replace(job, ticket=str(await self.admission.reserve(ticket, job, self.meters)))


def make_door(*, total: int = 1000, clock: FakeClock | None = None, **terms: Any) -> Door:
    return Door(Terms(**terms), total, clock or FakeClock())


numbers = st.integers(0, 2**40)


@settings(deadline=None)
@given(
    reserved=numbers,
    expected=numbers,
    per_minute=st.floats(0, 1e12),
    per_day=numbers,
    fleet=st.text("abc;/-", max_size=20),
)
def test_a_ticket_survives_its_travel_in_the_job(
    reserved: int, expected: int, per_minute: float, per_day: int, fleet: str
) -> None:
    ticket = Ticket(
        reserved=reserved,
        expected=expected,
        tokens_per_minute=per_minute,
        tokens_per_day=per_day,
        tokens_per_month=2 * per_day,
        fleet=fleet,
    )
    assert Ticket.parse(str(ticket)) == ticket


@pytest.mark.parametrize("text", ["", "key:400", "9;1;2"])
def test_a_ticket_of_another_version_is_nobodys_and_limits_nothing(text: str) -> None:
    assert Ticket.parse(text) == Ticket()


class TestRequests:
    async def test_a_tenant_may_send_as_many_as_its_bucket_holds_and_is_told_when_to_come_back(self) -> None:
        door = make_door(requests_per_minute=60)
        for number in range(60):
            await door.enter(f"job{number}")
        with pytest.raises(LimitReached) as refused:
            await door.enter("one too many")
        assert refused.value.retry_after_s == pytest.approx(1.0, abs=0.01)
        door.clock.advance(refused.value.retry_after_s or 0)
        await door.enter("in time")

    async def test_tenants_have_buckets_of_their_own(self) -> None:
        door = make_door(requests_per_minute=1)
        await door.enter("job1", tenant="one")
        await door.enter("job2", tenant="other")
        with pytest.raises(LimitReached):
            await door.enter("job3", tenant="one")

    async def test_a_request_that_opens_no_turn_counts_and_holds_no_place(self) -> None:
        door = make_door(requests_per_minute=2, concurrent=1)
        await door.admission.count("acme", "one", door.terms, door.meters)
        await door.admission.count("acme", "two", door.terms, door.meters)
        with pytest.raises(LimitReached):
            await door.admission.count("acme", "three", door.terms, door.meters)
        door.clock.advance(30)
        await door.enter("job")

    async def test_without_limits_nothing_is_counted_against_a_rate(self) -> None:
        door = make_door()
        for number in range(50):
            await door.enter(f"job{number}", prompt=10_000)
        assert door.meters.seen == {}


class TestPlaces:
    async def test_a_tenants_full_house_is_its_own_limit(self) -> None:
        door = make_door(concurrent=2)
        await door.enter("job1")
        await door.enter("job2")
        with pytest.raises(LimitReached) as refused:
            await door.enter("job3")
        assert (refused.value.code, refused.value.retry_after_s) == ("concurrency_limit", 1.0)
        await door.enter("job4", tenant="other")

    async def test_turns_that_wait_are_bounded_apart_from_those_that_run(self) -> None:
        door = make_door(queued=1, concurrent=10)
        job = await door.enter("job1")
        with pytest.raises(LimitReached) as refused:
            await door.enter("job2")
        assert refused.value.code == "queue_limit"
        await door.admission.beat([Pulse(job=job, waits=False)])
        await door.enter("job2")

    async def test_everybodys_full_house_is_an_overload_and_takes_nothing_of_the_tenant(self) -> None:
        door = make_door(total=2, requests_per_minute=100)
        await door.enter("job1", tenant="one")
        await door.enter("job2", tenant="other")
        with pytest.raises(Overloaded) as refused:
            await door.enter("job3")
        assert refused.value.retry_after_s == 1.0
        assert await door.backlog() == (0, 2)
        assert (await door.look("tenant/acme")).requests == 100

    async def test_who_waits_for_a_place_is_told_how_soon_one_is_likely_to_be_free(self) -> None:
        door = make_door(concurrent=4)
        first = await door.enter("first")
        door.clock.advance(20)
        await door.admission.settle(first, used=10)
        for number in range(4):
            await door.enter(f"job{number}")
        with pytest.raises(LimitReached) as refused:
            await door.enter("one too many")
        assert refused.value.retry_after_s == pytest.approx(5.0)
        with pytest.raises(LimitReached) as next_one:
            await door.enter("another one")
        assert next_one.value.retry_after_s == pytest.approx(10.0)

    async def test_an_ended_job_makes_room(self) -> None:
        door = make_door(concurrent=1)
        job = await door.enter("job1")
        await door.admission.settle(job, used=5)
        assert await door.backlog() == (0, 0)
        await door.enter("job2")

    async def test_a_ticket_that_nobody_renews_is_void_after_a_minute(self) -> None:
        door = make_door(concurrent=1, tokens_per_minute=600)
        await door.enter("its gateway died", prompt=500)
        with pytest.raises(LimitReached):
            await door.enter("job2")
        door.clock.advance(TTL_S)
        assert await door.backlog() == (0, 0)
        assert await door.tokens_left() == 600
        await door.enter("job2")

    async def test_a_ticket_that_is_renewed_holds_for_as_long_as_that(self) -> None:
        door = make_door(concurrent=1)
        job = await door.enter("job1")
        for _ in range(10):
            door.clock.advance(TTL_S - 1)
            await door.admission.renew([job])
        assert await door.backlog() == (1, 1)
        assert (await door.look("tenant/acme")).waiting == 1, "renewing from outside does not make it run"


class TestTokens:
    async def test_prompt_and_expected_answer_are_set_aside_and_the_rest_comes_back(self) -> None:
        door = make_door(tokens_per_minute=1000)
        job = await door.enter("job1", prompt=300, output=100)
        assert (Ticket.parse(job.ticket).reserved, await door.tokens_left()) == (400, 600)
        await door.admission.settle(job, used=310)
        assert await door.tokens_left() == 690

    async def test_all_prompts_and_the_answers_to_each_are_set_aside(self) -> None:
        door = make_door(tokens_per_minute=1000)
        ticket = await door.admit("job1")
        job = make_job("job1", more_prompts=((1,) * 50, (2,) * 60), choices=6, sampling=Sampling(max_tokens=10))
        job = replace(job, ticket=str(await door.admission.reserve(ticket, job, door.meters)))
        assert Ticket.parse(job.ticket).reserved == 3 + 50 + 60 + 6 * 10
        await door.admission.settle(job, used=113 + 6 * 4)
        assert Ticket.parse((await door.enter("job2", prompt=10, output=100)).ticket).reserved == 10 + 4

    async def test_an_answer_is_expected_to_be_as_long_as_the_last_ones_not_as_long_as_it_may_be(self) -> None:
        door = make_door(tokens_per_minute=10_000)
        first = await door.enter("job1", prompt=10, output=5000)
        assert Ticket.parse(first.ticket).reserved == 10 + FIRST_OUTPUT
        await door.admission.settle(first, used=10 + 40)
        second = await door.enter("job2", prompt=10, output=5000)
        assert Ticket.parse(second.ticket).reserved == 10 + 40
        short = await door.enter("job3", prompt=10, output=7)
        assert Ticket.parse(short.ticket).reserved == 10 + 7

    async def test_more_than_the_bucket_is_deep_sets_aside_the_whole_bucket(self) -> None:
        door = make_door(tokens_per_minute=1000)
        await door.enter("job1", prompt=5000)
        assert await door.tokens_left() == 0

    async def test_tokens_that_are_not_there_are_refused_with_the_time_until_they_are(self) -> None:
        door = make_door(tokens_per_minute=600)
        await door.enter("job1", prompt=590)
        with pytest.raises(LimitReached) as refused:
            await door.enter("job2", prompt=60)
        assert refused.value.retry_after_s == pytest.approx(5.0, abs=0.01)
        door.clock.advance(refused.value.retry_after_s or 0)
        await door.admission.withdraw(Ticket(fleet="small/"), "acme", "job2")
        await door.enter("job2", prompt=60)

    async def test_a_dry_bucket_refuses_before_a_prompt_is_made_and_guesses_at_its_size(self) -> None:
        door = make_door(tokens_per_minute=600)
        job = await door.enter("job1", prompt=600)
        with pytest.raises(LimitReached) as refused:
            await door.admit("job2", num_bytes=4 * 44)
        assert refused.value.retry_after_s == pytest.approx((44 + FIRST_OUTPUT) / 10, abs=0.01)
        assert await door.backlog() == (1, 1)
        await door.admission.settle(job, used=600)

    async def test_what_was_used_beyond_the_ticket_is_a_debt(self) -> None:
        door = make_door(tokens_per_minute=1000)
        job = await door.enter("job1", prompt=100)
        await door.admission.settle(job, used=1500)
        assert await door.tokens_left() == -500
        with pytest.raises(LimitReached) as refused:
            await door.admit("job2")
        assert refused.value.retry_after_s == pytest.approx((500 + 1000) / 1000 * 60, abs=0.01)

    async def test_settling_twice_changes_nothing(self) -> None:
        door = make_door(tokens_per_minute=1000)
        await door.enter("other", prompt=500)
        job = await door.enter("job1", prompt=400)
        for _ in range(3):
            await door.admission.settle(job, used=100)
        assert (await door.tokens_left(), await door.backlog()) == (400, (1, 1))

    async def test_a_job_that_was_never_admitted_settles_nothing(self) -> None:
        door = make_door(tokens_per_minute=1000)
        other = await door.enter("other", prompt=500)
        await door.admission.settle(make_job("stranger", ticket=other.ticket), used=0)
        assert (await door.tokens_left(), await door.backlog()) == (500, (1, 1))

    async def test_settling_never_fills_a_bucket_beyond_its_depth(self) -> None:
        door = make_door(tokens_per_minute=1000)
        job = await door.enter("job1", prompt=1000)
        door.clock.advance(59)
        await door.admission.settle(job, used=0)
        assert await door.tokens_left() == 1000

    async def test_a_withdrawn_ticket_gives_everything_back(self) -> None:
        door = make_door(tokens_per_minute=1000)
        job = await door.enter("job1", prompt=100)
        await door.admission.withdraw(Ticket.parse(job.ticket), "acme", job.id)
        assert (await door.tokens_left(), await door.backlog()) == (1000, (0, 0))


class TestAgain:
    async def test_a_job_that_comes_again_after_everything_was_lost_counts_again_whatever_the_limits(self) -> None:
        door = make_door(tokens_per_minute=1000, concurrent=1, total=1)
        job = await door.enter("job1", prompt=400)
        door.accounts.lose_everything()
        await door.enter("job2", prompt=0)
        await door.admission.readmit(job)
        assert (await door.tokens_left(), await door.backlog()) == (600, (2, 2))

    async def test_a_job_that_comes_again_while_it_is_counted_is_not_counted_twice(self) -> None:
        door = make_door(tokens_per_minute=1000)
        job = await door.enter("job1", prompt=400)
        for _ in range(3):
            await door.admission.readmit(job)
        assert (await door.tokens_left(), await door.backlog()) == (600, (1, 1))
        await door.admission.settle(job, used=0)
        assert (await door.tokens_left(), await door.backlog()) == (1000, (0, 0))

    async def test_a_job_that_was_given_up_and_is_found_again_sets_its_tokens_aside_anew(self) -> None:
        door = make_door(tokens_per_minute=100)
        job = await door.enter("job1", prompt=40)
        await door.admission.withdraw(Ticket.parse(job.ticket), "acme", "job1")
        assert await door.tokens_left() == 100
        await door.admit("job1")
        await door.admission.readmit(job)
        assert await door.tokens_left() == 100, "it is in, and nothing is set aside before its prompt is known"
        await door.admission.withdraw(Ticket.parse(job.ticket), "acme", "job1")
        await door.admission.readmit(job)
        assert await door.tokens_left() == 60
        await door.admission.settle(job, 10)
        assert await door.tokens_left() == 90

    actions = st.lists(
        st.tuples(st.sampled_from(["settle", "withdraw", "readmit", "beat"]), st.integers(0, 4), st.integers(0, 300)),
        max_size=30,
    )

    @settings(deadline=None)
    @given(actions=actions)
    async def test_whatever_is_repeated_no_token_is_given_back_or_charged_twice(
        self, actions: list[tuple[str, int, int]]
    ) -> None:
        """The time stands, so the bucket must hold what it held, less what was used and what is still set aside."""
        door = make_door(tokens_per_minute=10_000)
        jobs = [await door.enter(f"job{number}", prompt=300) for number in range(5)]
        spent = dict.fromkeys(range(5), 300)
        inside = set(range(5))
        for action, number, used in actions:
            job = jobs[number]
            if action == "beat":
                await door.admission.beat([Pulse(job=job, used=used)])
            elif action == "readmit":
                await door.admission.readmit(job)
                spent[number] += 0 if number in inside else 300
                inside.add(number)
            else:
                used = used if action == "settle" else 0
                if action == "settle":
                    await door.admission.settle(job, used)
                else:
                    await door.admission.withdraw(Ticket.parse(job.ticket), "acme", job.id)
                spent[number] -= 300 - used if number in inside else 0
                inside.discard(number)
            assert await door.tokens_left() == max(0, 10_000 - sum(spent.values()))
            assert await door.backlog() == (len(inside), len(inside))


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


async def test_what_is_left_of_the_limits_is_noted_also_when_they_are_reached() -> None:
    door = make_door(requests_per_minute=2, tokens_per_minute=100)
    await door.enter("job1", prompt=40)
    assert door.meters.seen == {"requests": Meter(2, 1, 30), "tokens": Meter(100, 60, 24)}
    await door.enter("job2", prompt=59)
    with pytest.raises(LimitReached):
        await door.enter("job3")
    assert door.meters.seen["requests"] == Meter(2, 0, 60)


@pytest.mark.parametrize(("name", "window"), [("day", 20260301), ("month", 202603)])
def test_windows_are_of_utc(name: str, window: int) -> None:
    start = datetime(2026, 3, 1, tzinfo=UTC).timestamp()
    assert window_start(name, window) == start
    assert window in windows(start)
    assert window not in windows(start - 0.001)


def test_errors_of_limits_are_of_one_family() -> None:
    assert issubclass(BudgetSpent, LimitReached)
    assert issubclass(BudgetSpent, AxonError)


@pytest.mark.parametrize("is_shared", [False, True])
async def test_a_refused_duplicate_leaves_the_ticket_that_it_shares_with_an_accepted_turn(is_shared: bool) -> None:
    async def shared() -> bool:
        return is_shared

    door = make_door()
    await door.admit("turn_1")  # the first of two requests with one key, whose turn is accepted
    admission = Admission(door.accounts, AdmissionConfig(backlog_total=1), door.clock)
    await admission.admit(Entrant(job_id="turn_0", tenant="beta", terms=door.terms, deployment="other"), Meters())
    with pytest.raises(Overloaded):
        await admission.admit(
            Entrant(job_id="turn_1", tenant="acme", terms=door.terms, deployment="other"), Meters(), is_shared=shared
        )
    assert (await door.look("tenant/acme")).jobs == int(is_shared)


def elsewhere(door: Door, job_id: str, *others: str, at: str = "small", tenant: str = "acme") -> Entrant:
    places = tuple(Place(name) for name in others)
    return Entrant(job_id=job_id, tenant=tenant, terms=door.terms, deployment=at, others=places)


async def test_a_full_deployment_leaves_a_turn_to_the_first_fallback_that_is_not() -> None:
    door = make_door(total=1)
    fleets = [
        (await door.admission.admit(elsewhere(door, f"turn_{number}", "spare", "last"), door.meters)).fleet
        for number in range(3)
    ]
    assert fleets == ["small/", "spare/", "last/"]
    with pytest.raises(Overloaded):
        await door.admission.admit(elsewhere(door, "turn_3", "spare", "last"), door.meters)
    assert (await door.look("tenant/acme")).jobs == 3, "the refused one left nothing"


async def test_a_limit_of_the_tenants_own_is_not_evaded_by_a_fallback() -> None:
    door = make_door(concurrent=1)
    await door.admit("turn_0")
    with pytest.raises(LimitReached):
        await door.admission.admit(elsewhere(door, "turn_1", "spare"), door.meters)
    assert (await door.look("fleet/spare/")).jobs == 0


async def test_a_ticket_switches_to_the_account_of_another_deployment_unless_that_is_full() -> None:
    door = make_door(total=1)
    ticket = await door.admit("turn_0")
    ticket = await door.admission.switch(ticket, elsewhere(door, "turn_0", at="spare"), door.meters)
    assert ticket.fleet == "spare/"
    assert [(await door.look(f"fleet/{name}/")).jobs for name in ("small", "spare")] == [0, 1]
    second = await door.admit("turn_1")
    with pytest.raises(Overloaded):
        await door.admission.switch(second, elsewhere(door, "turn_1", at="spare"), door.meters)
    await door.admission.withdraw(second, "acme", "turn_1")
    assert [(await door.look(f"fleet/{name}/")).jobs for name in ("small", "spare")] == [0, 1]
