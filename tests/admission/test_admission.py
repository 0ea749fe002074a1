"""Admission: limits are the tenant's, a full fleet is an overload, an accepted turn is never refused again."""

import pytest

from axon.admission.admission import Admission, Entrant, Pulse
from axon.admission.config import AdmissionConfig
from axon.admission.meters import Meter, Meters
from axon.admission.place import Place
from axon.errors import AxonError, BudgetSpent, LimitReached, Overloaded
from tests.admission.door import TTL_S, Door, make_door


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


async def test_what_is_left_of_the_limits_is_noted_also_when_they_are_reached() -> None:
    door = make_door(requests_per_minute=2, tokens_per_minute=100)
    await door.enter("job1", prompt=40)
    assert door.meters.seen == {"requests": Meter(2, 1, 30), "tokens": Meter(100, 60, 24)}
    await door.enter("job2", prompt=59)
    with pytest.raises(LimitReached):
        await door.enter("job3")
    assert door.meters.seen["requests"] == Meter(2, 0, 60)


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
