"""Tasks that end together. Knows no work: who starts a task decides what its result means."""

import asyncio
import contextlib
from typing import Any, TypeVar

T = TypeVar("T")


async def race(*tasks: asyncio.Task[T]) -> list[asyncio.Task[T]]:
    """Waits until one of the tasks has ended, cancels the others and waits for them too.

    Returns those that ended by themselves, in the order given; raises nothing of theirs, so ask each for its result.
    Being cancelled cancels them all. A ``TaskGroup`` would lose a cancellation that comes when one of them fails.
    """
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await end(*tasks)
    return [task for task in tasks if task in done]


async def end(*tasks: "asyncio.Future[Any]") -> None:
    """Cancels the tasks and waits until they have ended; raises nothing of theirs."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def settled(future: "asyncio.Future[Any]") -> None:
    """Waits until a future is done, however often the waiting is cancelled; raises nothing of its. It must end by
    itself."""
    while not future.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([future])
    future.cancelled() or future.exception()  # it is raised to nobody: whoever asked has left


def outcome(task: asyncio.Task[T]) -> T | BaseException | None:
    """What a task has returned or raised; None if it runs or was cancelled."""
    if not task.done() or task.cancelled():
        return None
    return task.exception() or task.result()
