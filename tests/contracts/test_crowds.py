"""The crowds' contract. A missing crowd is empty."""

import pytest

from axon.ports.live import Crowds, Live
from tests.contracts.backends import LiveBackend


@pytest.fixture
def crowds(live: Live) -> Crowds:
    return live.crowds


class TestCrowds:
    async def enter(self, crowds: Crowds, member: str, *, limit: int = 2, ttl_s: float = 10.0) -> bool:
        return await crowds.enter("acme", member, limit=limit, ttl_s=ttl_s)

    async def test_a_crowd_takes_as_many_as_its_limit(self, crowds: Crowds) -> None:
        assert [await self.enter(crowds, member) for member in "abc"] == [True, True, False]
        assert await crowds.count("acme") == 2

    async def test_a_member_who_is_in_enters_again_even_when_full(self, crowds: Crowds) -> None:
        for member in "ab":
            await self.enter(crowds, member)
        assert await self.enter(crowds, "a")
        assert await crowds.count("acme") == 2

    async def test_who_leaves_makes_room_once(self, crowds: Crowds) -> None:
        for member in "ab":
            await self.enter(crowds, member)
        for _ in range(2):
            await crowds.leave("acme", "a")
        await crowds.leave("acme", "unknown")
        await crowds.leave("nobody", "a")
        assert [await self.enter(crowds, member) for member in "cd"] == [True, False]

    async def test_a_member_who_is_not_renewed_is_out(self, lives: LiveBackend, crowds: Crowds) -> None:
        await self.enter(crowds, "a", ttl_s=0.1)
        await self.enter(crowds, "b", ttl_s=10.0)
        await lives.pass_time(0.2)
        assert await crowds.count("acme") == 1
        assert await self.enter(crowds, "c")

    async def test_entering_again_renews(self, lives: LiveBackend, crowds: Crowds) -> None:
        await self.enter(crowds, "a", ttl_s=0.1)
        await self.enter(crowds, "a", ttl_s=10.0)
        await lives.pass_time(0.2)
        assert await crowds.count("acme") == 1

    async def test_nobody_enters_a_crowd_of_none(self, crowds: Crowds) -> None:
        assert not await self.enter(crowds, "a", limit=0)
        assert await crowds.count("acme") == 0

    async def test_after_losing_everything_a_crowd_is_empty(self, lives: LiveBackend, crowds: Crowds) -> None:
        for member in "ab":
            await self.enter(crowds, member)
        await lives.lose_everything()
        assert await crowds.count("acme") == 0
        assert await self.enter(crowds, "c")
