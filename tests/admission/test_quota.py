"""A tenant's quota of what is stored: exact at one gateway, a second behind the others, and never in a turn's way."""

import asyncio
from typing import TYPE_CHECKING

import pytest

from axon.admission.quota import Quota, refusal
from axon.domain.tenants.storage import Stored
from axon.domain.tenants.tenant import Terms
from axon.errors import DependencyDown, StorageFull
from axon.runtime.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

TERMS = Terms(stored_bytes=1000, stored_objects=10)
ONE = Stored(num_bytes=100, num_objects=1)


class Shelf:
    """A store of one tenant that says what it holds, and how often it was asked."""

    def __init__(self) -> None:
        self.held, self.num_reads = Stored(), 0
        self.before_read: Callable[[], Awaitable[None]] | None = None

    async def measure(self, tenant: str) -> Stored:
        self.num_reads += 1
        if self.before_read:
            await self.before_read()
        return self.held


class Desk:
    def __init__(self) -> None:
        self.shelf, self.clock = Shelf(), FakeClock()
        self.quota = Quota(self.shelf.measure, self.clock)

    async def put(self, more: Stored = ONE, terms: Terms = TERMS) -> bool:
        """Whether there was room; what had is on the shelf."""
        try:
            async with self.quota.room("acme", terms, more):
                await asyncio.sleep(0)  # others come meanwhile
                self.shelf.held += more
        except StorageFull:
            return False
        return True


async def test_what_fits_exactly_is_let_in_and_no_more() -> None:
    desk = Desk()
    assert [await desk.put() for _ in range(12)] == [True] * 10 + [False] * 2
    assert desk.shelf.held == Stored(num_bytes=1000, num_objects=10)
    assert desk.shelf.num_reads == 1


async def test_many_at_once_do_not_go_through_it_together() -> None:
    desk = Desk()
    let_in = await asyncio.gather(*(desk.put() for _ in range(50)))
    assert sum(let_in) == 10
    assert desk.shelf.num_reads == 1


async def test_what_another_gateway_stored_is_seen_after_a_second() -> None:
    desk = Desk()
    assert await desk.put()
    desk.shelf.held = Stored(num_bytes=1000, num_objects=10)
    assert await desk.put()
    desk.clock.advance(1.0)
    assert not await desk.put()


async def test_what_is_erased_makes_room_at_once() -> None:
    desk = Desk()
    assert [await desk.put() for _ in range(11)][-1] is False
    desk.shelf.held = Stored()
    assert not await desk.put()
    desk.quota.forget("acme")
    desk.quota.forget("stranger")
    assert await desk.put()


async def test_a_write_that_fails_takes_no_room() -> None:
    desk = Desk()
    for _ in range(20):
        with pytest.raises(DependencyDown):
            async with desk.quota.room("acme", TERMS, ONE):
                raise DependencyDown
    assert await desk.put()


async def test_what_is_written_while_it_is_measured_is_not_forgotten() -> None:
    """The measurement may have begun before the write was there: it is counted on top until the next one."""
    desk = Desk()
    desk.shelf.held = Stored(num_bytes=800, num_objects=8)
    measuring, go_on = asyncio.Event(), asyncio.Event()

    async def slowly() -> None:
        measuring.set()
        await go_on.wait()

    async with desk.quota.room("acme", TERMS, ONE):
        desk.clock.advance(2.0)
        desk.shelf.before_read = slowly
        late = asyncio.create_task(desk.put(Stored(num_bytes=200, num_objects=1)))
        await measuring.wait()
    go_on.set()
    assert not await late


async def test_a_store_that_is_away_stops_nobody_and_what_was_known_last_holds() -> None:
    desk = Desk()
    assert await desk.put(Stored(num_bytes=900, num_objects=1))

    async def away() -> None:
        raise DependencyDown

    desk.shelf.before_read = away
    desk.clock.advance(2.0)
    assert await desk.put()
    assert not await desk.put()
    assert desk.shelf.num_reads == 2  # it is not asked again for a while
    desk.shelf.before_read = None
    desk.clock.advance(10.0)
    desk.shelf.held = Stored()
    assert await desk.put()


async def test_without_a_quota_nothing_is_measured() -> None:
    desk = Desk()
    assert await desk.put(Stored(num_bytes=1 << 40, num_objects=1 << 20), Terms())
    assert desk.shelf.num_reads == 0


@pytest.mark.parametrize(
    ("used", "more", "says"),
    [
        (Stored(num_bytes=950), ONE, "950 bytes"),
        (Stored(num_objects=10), ONE, "10 objects"),
        (Stored(num_bytes=900, num_objects=9), ONE, None),
        (Stored(num_bytes=2000), Stored(), "2000 bytes"),
    ],
)
def test_a_refusal_says_what_is_stored_and_what_to_do(used: Stored, more: Stored, says: str | None) -> None:
    found = refusal(used, more, TERMS)
    if says is None:
        assert found is None
    else:
        assert found is not None
        assert says in found.message
        assert "Delete conversations or responses" in found.message
        assert not found.retryable
