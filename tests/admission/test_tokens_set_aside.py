"""Tokens are set aside for a job, charged and given back once, whatever is repeated."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axon.admission.admission import Pulse
from axon.admission.limits import FIRST_OUTPUT
from axon.admission.ticket import Ticket
from axon.domain.sampling import Sampling
from axon.errors import LimitReached
from tests.admission.door import make_door
from tests.contracts.builders import make_job


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
