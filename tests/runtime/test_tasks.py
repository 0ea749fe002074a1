"""Of tasks that race, one ends by itself and none is left behind."""

import asyncio

import pytest

from axon.runtime.tasks import end, outcome, race, settled

pytestmark = pytest.mark.asyncio


class Work:
    """Endless work that notes its cancellation, and ends only after another pass of the event loop."""

    def __init__(self) -> None:
        self.has_begun, self.has_ended = asyncio.Event(), False

    async def run(self) -> None:
        self.has_begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.has_ended = True


async def quick(result: str) -> str:
    return result


async def failing() -> str:
    raise ValueError("broken")


async def test_the_first_to_end_is_returned_and_the_others_have_ended_too() -> None:
    work = Work()
    running = asyncio.create_task(work.run())
    await work.has_begun.wait()
    ended = await race(running, asyncio.create_task(quick("done")))
    assert [task.result() for task in ended] == ["done"]
    assert running.cancelled()
    assert work.has_ended


async def test_of_two_that_end_together_both_are_returned_in_the_order_given() -> None:
    ended = await race(*(asyncio.create_task(quick(name)) for name in ("a", "b")))
    assert [task.result() for task in ended] == ["a", "b"]


async def test_a_failure_ends_the_race_and_is_the_tasks_own() -> None:
    work = Work()
    running = asyncio.create_task(work.run())
    await work.has_begun.wait()
    [failed] = await race(asyncio.create_task(failing()), running)
    with pytest.raises(ValueError, match="broken"):
        failed.result()
    assert work.has_ended


async def test_a_cancelled_race_leaves_no_task_running() -> None:
    works = [Work(), Work()]
    tasks = [asyncio.create_task(work.run()) for work in works]
    racing = asyncio.create_task(race(*tasks))
    for work in works:
        await work.has_begun.wait()
    racing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await racing
    assert [work.has_ended for work in works] == [True, True]


async def test_tasks_that_have_ended_or_failed_can_be_ended_again() -> None:
    tasks = [asyncio.create_task(quick("done")), asyncio.create_task(failing())]
    await asyncio.wait(tasks)
    await end(*tasks)
    assert tasks[0].result() == "done"


async def test_no_task_at_all_can_be_ended() -> None:
    await end()


async def test_a_tasks_outcome_is_what_it_returned_or_raised() -> None:
    running = asyncio.create_task(Work().run())
    done, failed = asyncio.create_task(quick("")), asyncio.create_task(failing())
    await asyncio.wait([done, failed])
    assert outcome(done) == ""
    assert isinstance(outcome(failed), ValueError)
    assert outcome(running) is None
    await end(running)
    assert outcome(running) is None


async def test_a_future_is_waited_for_though_the_waiting_is_cancelled_again_and_again() -> None:
    future = asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(settled(future))
    for _ in range(3):
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        assert not waiting.done()
    future.set_exception(ValueError("nobody's"))
    await waiting


async def test_a_cancelled_future_is_settled() -> None:
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    await settled(future)
