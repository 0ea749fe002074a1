"""Blocking calls on files: in threads of their own, waited for where a file must be closed."""

import asyncio
import os
import signal
import threading

import pytest

from axon.weights.threads import aside, in_thread


async def test_calls_that_hang_leave_the_event_loops_own_threads_alone() -> None:
    assert (await aside(threading.current_thread)).name.startswith("axon-weights")
    freed = threading.Event()
    hanging = [asyncio.create_task(aside(freed.wait)) for _ in range(20)]
    assert await asyncio.to_thread(threading.get_ident)
    freed.set()
    assert await asyncio.gather(*hanging) == [True] * 20


async def test_a_cancelled_call_is_waited_for_where_its_file_must_be_closed() -> None:
    begun, freed, ended = asyncio.Event(), threading.Event(), list[str]()
    loop = asyncio.get_running_loop()

    def call() -> None:
        loop.call_soon_threadsafe(begun.set)
        freed.wait()
        ended.append("call")

    waiting = asyncio.create_task(in_thread(call))
    await begun.wait()
    waiting.cancel()
    begun.clear()
    leaving = asyncio.create_task(aside(call))
    await begun.wait()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert (ended, waiting.done()) == ([], False)
    freed.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended


def test_a_forked_process_has_threads_of_its_own() -> None:
    asyncio.run(aside(int))
    if (child := os.fork()) == 0:
        signal.alarm(20)  # ends a child that would wait for ever
        os._exit(0 if asyncio.run(aside(int)) == 0 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
