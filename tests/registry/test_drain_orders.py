"""Orders to drain: the worker that is named hears of it and answers; without an answer, whoever gave it is told."""

import asyncio

import pytest

from axon.adapters.live.memory.live import open_memory_live
from axon.errors import Conflict
from axon.registry.drain_orders import DrainListener, DrainOrders
from axon.runtime.clock import SystemClock


async def test_the_worker_that_is_named_drains_and_no_other() -> None:
    wakeups = open_memory_live(SystemClock(), retention_s=60.0).wakeups
    drained: list[str] = []
    async with asyncio.TaskGroup() as tasks:
        listening = [
            tasks.create_task(DrainListener(wakeups, name, lambda name=name: drained.append(name)).run())  # type: ignore[misc]
            for name in ("one", "two")
        ]
        async with asyncio.timeout(10):
            while await wakeups.counts(["drain/one", "drain/two"]) != [1, 1]:  # noqa: ASYNC110 - it has no event for its listeners
                await asyncio.sleep(0)
            assert await DrainOrders(wakeups).takers(["one", "nobody", "two"]) == {"one", "two"}
            assert await DrainOrders(wakeups).takers([]) == frozenset()
            await DrainOrders(wakeups).give("two")
            while not drained:  # noqa: ASYNC110 - the listener drains after its answer
                await asyncio.sleep(0)
        for task in listening:
            task.cancel()
    assert drained == ["two"]


async def test_a_worker_that_nobody_listens_for_is_not_drained() -> None:
    wakeups = open_memory_live(SystemClock(), retention_s=60.0).wakeups
    with pytest.raises(Conflict, match="takes no order to drain"):
        await DrainOrders(wakeups).give("gone")


async def test_a_worker_that_hangs_is_waited_for_so_long_and_no_longer() -> None:
    wakeups = open_memory_live(SystemClock(), retention_s=60.0).wakeups
    async with wakeups.listen("drain/hangs"):
        with pytest.raises(Conflict, match="it hangs"):
            await DrainOrders(wakeups, answer_s=0.01).give("hangs")
