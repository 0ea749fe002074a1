"""Messages that are received at once have a bound, in all and of each tenant; whoever waits is let in later."""

import asyncio
from contextlib import AsyncExitStack

from axon.gateway.grpc.reading import Reading


def rooms() -> Reading:
    return Reading(max_bytes=4, max_tenant_bytes=2, max_message_bytes=1)


async def is_let_in(reading: Reading, stack: AsyncExitStack, tenant: str) -> bool:
    try:
        async with asyncio.timeout(0.01):
            await stack.enter_async_context(reading.room(tenant))
    except TimeoutError:
        return False
    return True


async def test_a_tenant_has_its_own_rooms_and_all_have_theirs() -> None:
    reading = rooms()
    async with AsyncExitStack() as stack:
        assert [await is_let_in(reading, stack, "a") for _ in range(3)] == [True, True, False]
        assert [await is_let_in(reading, stack, "b") for _ in range(3)] == [True, True, False]
        assert not await is_let_in(reading, stack, "c"), "all together have four"
    async with AsyncExitStack() as stack:
        assert await is_let_in(reading, stack, "c")
        assert reading.num_tenants == 1
    assert reading.num_tenants == 0


async def test_who_waits_comes_in_when_another_leaves() -> None:
    reading = rooms()
    async with AsyncExitStack() as stack, reading.room("a"):
        for _ in range(1):
            await stack.enter_async_context(reading.room("a"))
        waiter = asyncio.create_task(is_let_in(reading, stack, "a"))
        await asyncio.sleep(0)
        assert not waiter.done()
        await stack.aclose()
        assert await waiter


async def test_a_message_is_always_taken_however_large_it_may_be() -> None:
    reading = Reading(max_bytes=1, max_tenant_bytes=1, max_message_bytes=100)
    async with AsyncExitStack() as stack:
        assert await is_let_in(reading, stack, "a")
