"""Requests start tenant by tenant: a burst of one holds up no other, and is answered in its own order."""

import asyncio

from axon.gateway.http.fair_start import FairStart


async def started(fair: FairStart, order: list[str], tenant: str, number: int) -> None:
    await fair.wait(tenant)
    order.append(f"{tenant}{number}")


async def test_a_request_beside_a_burst_starts_before_the_bursts_tail() -> None:
    fair, order = FairStart(per_pass=2), list[str]()
    async with asyncio.TaskGroup() as tasks:
        for number in range(100):
            tasks.create_task(started(fair, order, "flood", number))
        tasks.create_task(started(fair, order, "quiet", 0))
    assert order.index("quiet0") <= 2
    assert [each for each in order if each.startswith("flood")] == [f"flood{number}" for number in range(100)]


async def test_one_that_comes_in_the_middle_of_a_burst_starts_at_once() -> None:
    fair, order = FairStart(per_pass=2), list[str]()
    async with asyncio.TaskGroup() as tasks:
        for number in range(100):
            tasks.create_task(started(fair, order, "flood", number))
        for _ in range(5):
            await asyncio.sleep(0)
        before = len(order)
        await started(fair, order, "quiet", 0)
        assert len(order) <= before + 3
    assert len(order) == 101


async def test_a_client_that_leaves_while_it_waits_takes_nobodys_turn() -> None:
    fair, order = FairStart(per_pass=1), list[str]()
    tasks = [asyncio.create_task(started(fair, order, "flood", number)) for number in range(6)]
    await asyncio.sleep(0)
    tasks[3].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == ["flood0", "flood1", "flood2", "flood4", "flood5"]


async def test_it_rests_and_forgets_when_nobody_waits() -> None:
    fair = FairStart(per_pass=1)
    for _ in range(3):
        await fair.wait("acme")
    for _ in range(5):
        await asyncio.sleep(0)
    assert (fair._is_scheduled, fair._started, fair._waiting) == (False, {}, {})
