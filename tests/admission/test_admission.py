"""Admission: limits are kept, what was set aside comes back once, and an accepted turn is never refused again."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axon.adapters.live.memory_buckets import MemoryBuckets
from axon.admission.admission import Admission, Ticket
from axon.admission.config import AdmissionConfig
from axon.admission.meters import Meter, Meters
from axon.domain.job import Job
from axon.errors import LimitReached, Overloaded
from axon.runtime.clock import FakeClock
from tests.contracts.builders import make_job

TTL_S = 600.0


@dataclass
class Door:
    """An admission on buckets whose time we hold."""

    config: AdmissionConfig
    clock: FakeClock = field(default_factory=FakeClock)

    def __post_init__(self) -> None:
        self.buckets = MemoryBuckets(self.clock)
        self.admission = Admission(self.buckets, self.config, ticket_ttl_s=TTL_S)
        self.meters = Meters()

    async def tokens_left(self, key_id: str = "key") -> float:
        """What the bucket holds, found by taking nothing."""
        per_minute = self.config.tokens_per_minute
        taken = await self.buckets.take(f"tokens/{key_id}", 0, capacity=per_minute, refill_per_s=per_minute / 60)
        return taken.remaining

    async def backlog(self, key_id: str = "key") -> tuple[int, int]:
        """Of the key, and of all."""
        return await self.buckets.count(f"backlog/{key_id}"), await self.buckets.count("backlog")

    async def enter(self, job_id: str, *, tokens: int = 0, key_id: str = "key") -> Job:
        ticket = await self.admission.reserve(
            await self.admission.admit(key_id, job_id, self.meters), job_id, tokens, self.meters
        )
        return make_job(job_id, ticket=str(ticket))


def make_door(
    *, requests_per_minute: float = 0, tokens_per_minute: float = 0, per_key: int = 100, total: int = 1000
) -> Door:
    config = AdmissionConfig(
        requests_per_minute=requests_per_minute,
        tokens_per_minute=tokens_per_minute,
        backlog_per_key=per_key,
        backlog_total=total,
    )
    return Door(config)


@settings(deadline=None)
@given(key_id=st.text("abc019_-", min_size=1), reserved=st.integers(0, 2**31))
def test_a_ticket_survives_its_travel_in_the_job(key_id: str, reserved: int) -> None:
    ticket = Ticket(key_id, reserved)
    assert Ticket.parse(str(ticket)) == ticket


def test_a_job_without_a_ticket_is_nobodys_and_costs_nothing() -> None:
    assert Ticket.parse("") == Ticket("", 0)


async def test_a_key_may_send_as_many_requests_as_its_bucket_holds_and_is_told_when_to_come_back() -> None:
    door = make_door(requests_per_minute=60)
    for number in range(60):
        await door.enter(f"job{number}")
    with pytest.raises(LimitReached) as refused:
        await door.enter("one too many")
    assert refused.value.retry_after_s == pytest.approx(1.0, abs=0.01)
    door.clock.advance(refused.value.retry_after_s or 0)
    await door.enter("in time")


async def test_keys_have_buckets_of_their_own() -> None:
    door = make_door(requests_per_minute=1)
    await door.enter("job1", key_id="one")
    await door.enter("job2", key_id="other")
    with pytest.raises(LimitReached):
        await door.enter("job3", key_id="one")


async def test_without_limits_nothing_is_counted_against_a_rate() -> None:
    door = make_door()
    jobs = [await door.enter(f"job{number}", tokens=10**9) for number in range(50)]
    assert {job.ticket for job in jobs} == {"key:0"}


async def test_a_full_backlog_of_a_key_is_its_own_limit() -> None:
    door = make_door(per_key=2)
    await door.enter("job1")
    await door.enter("job2")
    with pytest.raises(LimitReached) as refused:
        await door.enter("job3")
    assert (refused.value.code, refused.value.retry_after_s) == ("backlog_full", 1.0)
    await door.enter("job4", key_id="other")


async def test_a_full_house_is_an_overload_and_takes_no_place_of_the_key() -> None:
    door = make_door(total=2)
    await door.enter("job1", key_id="one")
    await door.enter("job2", key_id="other")
    with pytest.raises(Overloaded) as refused:
        await door.enter("job3")
    assert refused.value.retry_after_s == 1.0
    assert await door.backlog() == (0, 2)


async def test_an_ended_job_makes_room() -> None:
    door = make_door(per_key=1)
    job = await door.enter("job1")
    await door.admission.settle(job, used=5)
    assert await door.backlog() == (0, 0)
    await door.enter("job2")


async def test_a_job_that_is_never_settled_makes_room_after_its_time() -> None:
    door = make_door(per_key=1)
    await door.enter("lost")
    door.clock.advance(TTL_S + 1)
    await door.enter("job2")


async def test_what_a_turn_may_cost_is_set_aside_and_the_rest_comes_back() -> None:
    door = make_door(tokens_per_minute=1000)
    job = await door.enter("job1", tokens=400)
    assert (job.ticket, await door.tokens_left()) == ("key:400", 600)
    await door.admission.settle(job, used=150)
    assert await door.tokens_left() == 850


async def test_more_than_the_bucket_is_deep_sets_aside_the_whole_bucket() -> None:
    door = make_door(tokens_per_minute=1000)
    job = await door.enter("job1", tokens=5000)
    assert (job.ticket, await door.tokens_left()) == ("key:1000", 0)


async def test_tokens_that_are_not_there_are_refused_with_a_time() -> None:
    door = make_door(tokens_per_minute=600)
    await door.enter("job1", tokens=600)
    ticket = await door.admission.admit("key", "job2", door.meters)
    with pytest.raises(LimitReached) as refused:
        await door.admission.reserve(ticket, "job2", 100, door.meters)
    assert refused.value.retry_after_s == pytest.approx(10.0, abs=0.01)
    await door.admission.withdraw(ticket, "job2")
    assert await door.backlog() == (1, 1)


async def test_a_turn_that_used_more_than_was_set_aside_gives_nothing_back() -> None:
    door = make_door(tokens_per_minute=1000)
    job = await door.enter("job1", tokens=100)
    await door.admission.settle(job, used=300)
    assert await door.tokens_left() == 900


async def test_a_withdrawn_ticket_gives_everything_back() -> None:
    door = make_door(tokens_per_minute=1000)
    job = await door.enter("job1", tokens=100)
    await door.admission.withdraw(Ticket.parse(job.ticket), job.id)
    assert (await door.tokens_left(), await door.backlog()) == (1000, (0, 0))


async def test_settling_twice_changes_nothing() -> None:
    door = make_door(tokens_per_minute=1000)
    await door.enter("other", tokens=500)
    job = await door.enter("job1", tokens=400)
    for _ in range(3):
        await door.admission.settle(job, used=100)
    assert (await door.tokens_left(), await door.backlog()) == (400, (1, 1))


async def test_a_job_that_was_never_admitted_settles_nothing() -> None:
    door = make_door(tokens_per_minute=1000)
    await door.enter("other", tokens=500)
    await door.admission.settle(make_job("stranger", ticket="key:400"), used=0)
    assert (await door.tokens_left(), await door.backlog()) == (500, (1, 1))


async def test_settling_never_fills_a_bucket_beyond_its_depth() -> None:
    door = make_door(tokens_per_minute=1000)
    job = await door.enter("job1", tokens=1000)
    door.clock.advance(59)
    await door.admission.settle(job, used=0)
    assert await door.tokens_left() == 1000


async def test_a_job_that_comes_again_after_everything_was_lost_counts_again_whatever_the_limits() -> None:
    door = make_door(tokens_per_minute=1000, per_key=1, total=1)
    job = await door.enter("job1", tokens=400)
    door.buckets.lose_everything()
    await door.enter("job2")
    await door.admission.readmit(job)
    assert (await door.tokens_left(), await door.backlog()) == (600, (2, 2))


async def test_a_job_that_comes_again_while_it_is_counted_is_not_counted_twice() -> None:
    door = make_door(tokens_per_minute=1000)
    job = await door.enter("job1", tokens=400)
    for _ in range(3):
        await door.admission.readmit(job)
    assert (await door.tokens_left(), await door.backlog()) == (600, (1, 1))
    await door.admission.settle(job, used=0)
    assert (await door.tokens_left(), await door.backlog()) == (1000, (0, 0))


async def test_a_job_that_comes_again_is_counted_for_its_whole_time() -> None:
    door = make_door(per_key=1)
    job = await door.enter("job1")
    door.clock.advance(TTL_S - 1)
    await door.admission.readmit(job)
    door.clock.advance(TTL_S - 1)
    assert await door.backlog() == (1, 1)


actions = st.lists(
    st.tuples(st.sampled_from(["settle", "withdraw", "readmit"]), st.integers(0, 4), st.integers(0, 300)), max_size=30
)


@settings(deadline=None)
@given(actions=actions)
async def test_whatever_is_repeated_no_token_is_given_back_twice(actions: list[tuple[str, int, int]]) -> None:
    """The time stands, so the bucket must hold what it held, less what was used and what is still set aside."""
    door = make_door(tokens_per_minute=10_000)
    jobs = [await door.enter(f"job{number}", tokens=300) for number in range(5)]
    spent = dict.fromkeys(range(5), 300)
    inside = set(range(5))
    for action, number, used in actions:
        job = jobs[number]
        if action == "readmit":
            await door.admission.readmit(job)
            spent[number] += 0 if number in inside else 300
            inside.add(number)
        else:
            used = used if action == "settle" else 0
            await door.admission.withdraw(Ticket.parse(job.ticket), job.id, used=used)
            spent[number] -= 300 - used if number in inside else 0
            inside.discard(number)
        assert await door.tokens_left() == max(0, 10_000 - sum(spent.values()))
        assert await door.backlog() == (len(inside), len(inside))


async def test_what_is_left_of_the_limits_is_noted_also_when_they_are_reached() -> None:
    door = make_door(requests_per_minute=2, tokens_per_minute=100)
    await door.enter("job1", tokens=40)
    assert door.meters.seen == {"requests": Meter(2, 1, 30), "tokens": Meter(100, 60, 24)}
    await door.enter("job2", tokens=60)
    with pytest.raises(LimitReached):
        await door.enter("job3")
    assert door.meters.seen["requests"] == Meter(2, 0, 60)


async def test_a_job_that_is_admitted_again_without_its_tokens_gets_none_back() -> None:
    """It was given up, and its tokens with it; the same job, found and admitted once more, must set them aside anew."""
    door = make_door(tokens_per_minute=100)
    job = await door.enter("job1", tokens=40)
    await door.admission.withdraw(Ticket.parse(job.ticket), "job1")
    assert await door.tokens_left() == 100
    await door.admission.admit("key", "job1", door.meters)
    await door.admission.readmit(job)
    assert await door.tokens_left() == 60
    await door.admission.settle(job, 10)
    assert await door.tokens_left() == 90
