"""The buckets' contract. A missing bucket is full, a missing crowd is empty."""

import math

import pytest

from axon.ports.live import Buckets, Live, Taken
from tests.contracts.backends import LiveBackend


@pytest.fixture
def buckets(live: Live) -> Buckets:
    return live.buckets


async def take(buckets: Buckets, cost: float, *, capacity: float = 10.0, refill_per_s: float = 10.0) -> Taken:
    return await buckets.take("acme", cost, capacity=capacity, refill_per_s=refill_per_s)


class TestRates:
    async def test_a_new_bucket_is_full(self, buckets: Buckets) -> None:
        taken = await take(buckets, 10)
        assert taken.granted
        assert taken.remaining == pytest.approx(0, abs=1)
        assert taken.retry_after_s == 0

    async def test_a_take_is_all_or_nothing(self, buckets: Buckets) -> None:
        await take(buckets, 6, refill_per_s=0.01)
        refused = await take(buckets, 5, refill_per_s=0.01)
        assert not refused.granted
        assert refused.remaining == pytest.approx(4, abs=0.1)
        assert (await take(buckets, 4, refill_per_s=0.01)).granted

    async def test_waiting_as_long_as_it_says_is_enough(self, lives: LiveBackend, buckets: Buckets) -> None:
        await take(buckets, 10)
        refused = await take(buckets, 3)
        assert 0 < refused.retry_after_s <= 0.31
        await lives.pass_time(refused.retry_after_s)
        assert (await take(buckets, 3)).granted

    async def test_half_that_wait_is_not(self, lives: LiveBackend, buckets: Buckets) -> None:
        await take(buckets, 10, refill_per_s=1)
        await lives.pass_time(0.1)
        assert not (await take(buckets, 1, refill_per_s=1)).granted

    async def test_a_bucket_fills_no_further_than_its_capacity(self, lives: LiveBackend, buckets: Buckets) -> None:
        await take(buckets, 1, refill_per_s=100)
        await lives.pass_time(0.2)
        assert (await take(buckets, 0, refill_per_s=100)).remaining == pytest.approx(10)

    async def test_what_can_never_be_granted_says_so(self, buckets: Buckets) -> None:
        refused = await take(buckets, 11)
        assert not refused.granted
        assert refused.retry_after_s == math.inf
        assert (await take(buckets, 10)).granted

    async def test_what_is_given_back_can_be_taken_again(self, buckets: Buckets) -> None:
        await take(buckets, 10, refill_per_s=0.01)
        await buckets.give("acme", 4, capacity=10)
        assert (await take(buckets, 4, refill_per_s=0.01)).granted
        assert not (await take(buckets, 1, refill_per_s=0.01)).granted

    async def test_giving_back_too_much_fills_the_bucket_and_no_more(self, buckets: Buckets) -> None:
        await take(buckets, 2, refill_per_s=0.01)
        await buckets.give("acme", 100, capacity=10)
        assert (await take(buckets, 10, refill_per_s=0.01)).granted
        assert not (await take(buckets, 1, refill_per_s=0.01)).granted

    async def test_a_smaller_capacity_holds_from_the_next_take_on(self, buckets: Buckets) -> None:
        await take(buckets, 1, refill_per_s=0.01)
        assert (await take(buckets, 0, capacity=5, refill_per_s=0.01)).remaining == pytest.approx(5)

    async def test_buckets_do_not_share(self, buckets: Buckets) -> None:
        await take(buckets, 10)
        assert (await buckets.take("other", 10, capacity=10, refill_per_s=1)).granted

    async def test_after_losing_everything_a_bucket_is_full(self, lives: LiveBackend, buckets: Buckets) -> None:
        await take(buckets, 10, refill_per_s=0.01)
        await lives.lose_everything()
        await buckets.give("acme", 5, capacity=10)
        assert (await take(buckets, 10, refill_per_s=0.01)).granted


class TestCrowds:
    async def enter(self, buckets: Buckets, member: str, *, limit: int = 2, ttl_s: float = 10.0) -> bool:
        return await buckets.enter("acme", member, limit=limit, ttl_s=ttl_s)

    async def test_a_crowd_takes_as_many_as_its_limit(self, buckets: Buckets) -> None:
        assert [await self.enter(buckets, member) for member in "abc"] == [True, True, False]
        assert await buckets.count("acme") == 2

    async def test_a_member_who_is_in_enters_again_even_when_full(self, buckets: Buckets) -> None:
        for member in "ab":
            await self.enter(buckets, member)
        assert await self.enter(buckets, "a")
        assert await buckets.count("acme") == 2

    async def test_who_leaves_makes_room_once(self, buckets: Buckets) -> None:
        for member in "ab":
            await self.enter(buckets, member)
        for _ in range(2):
            await buckets.leave("acme", "a")
        await buckets.leave("acme", "unknown")
        await buckets.leave("nobody", "a")
        assert [await self.enter(buckets, member) for member in "cd"] == [True, False]

    async def test_a_member_who_is_not_renewed_is_out(self, lives: LiveBackend, buckets: Buckets) -> None:
        await self.enter(buckets, "a", ttl_s=0.1)
        await self.enter(buckets, "b", ttl_s=10.0)
        await lives.pass_time(0.2)
        assert await buckets.count("acme") == 1
        assert await self.enter(buckets, "c")

    async def test_entering_again_renews(self, lives: LiveBackend, buckets: Buckets) -> None:
        await self.enter(buckets, "a", ttl_s=0.1)
        await self.enter(buckets, "a", ttl_s=10.0)
        await lives.pass_time(0.2)
        assert await buckets.count("acme") == 1

    async def test_nobody_enters_a_crowd_of_none(self, buckets: Buckets) -> None:
        assert not await self.enter(buckets, "a", limit=0)
        assert await buckets.count("acme") == 0

    async def test_after_losing_everything_a_crowd_is_empty(self, lives: LiveBackend, buckets: Buckets) -> None:
        for member in "ab":
            await self.enter(buckets, member)
        await lives.lose_everything()
        assert await buckets.count("acme") == 0
        assert await self.enter(buckets, "c")
