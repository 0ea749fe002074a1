"""Blocking calls on files: in threads of their own, waited for where a file must be closed."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from axon.runtime.file_threads import FileThreads

NUM_THREADS = 32
THREADS = FileThreads("axon-tests", NUM_THREADS)


async def test_calls_that_hang_leave_the_event_loops_own_threads_alone() -> None:
    assert (await THREADS.run(threading.current_thread)).name.startswith("axon-tests")
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    freed = threading.Event()
    hanging = [asyncio.create_task(THREADS.run(freed.wait)) for _ in range(20)]
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

    waiting = asyncio.create_task(THREADS.run_and_wait(call))
    await begun.wait()
    waiting.cancel()
    begun.clear()
    leaving = asyncio.create_task(THREADS.run(call))
    await begun.wait()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert (ended, waiting.done()) == ([], False)
    freed.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended


async def test_a_call_that_hangs_is_left_behind_by_who_is_cancelled_twice() -> None:
    begun, freed = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def call() -> bool:
        loop.call_soon_threadsafe(begun.set)
        return freed.wait()

    waiting = asyncio.create_task(THREADS.run_and_wait(call))
    await begun.wait()
    waiting.cancel()
    await asyncio.wait([waiting], timeout=0.1)
    assert not waiting.done()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    freed.set()


async def test_each_call_has_a_thread_while_there_are_enough_and_waits_for_one_then() -> None:
    together = threading.Barrier(NUM_THREADS)
    first = [asyncio.create_task(THREADS.run(together.wait, 20.0)) for _ in range(2 * NUM_THREADS)]
    assert sorted(await asyncio.gather(*first)) == sorted([*range(NUM_THREADS)] * 2)
    with pytest.raises(ValueError, match="invalid literal"):
        await THREADS.run(int, "x")


def test_a_process_ends_though_a_call_hangs() -> None:
    code = """
import asyncio, threading
from axon.runtime.file_threads import FileThreads
run = FileThreads("axon-tests", 2).run
async def main():
    begun, call = threading.Event(), threading.Event()
    asyncio.create_task(run(lambda: (begun.set(), call.wait())))
    await run(begun.wait)
asyncio.run(main())
print("ended")
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout == "ended\n"


def test_a_forked_process_has_threads_of_its_own() -> None:
    asyncio.run(THREADS.run(int))
    if (child := os.fork()) == 0:
        signal.alarm(20)  # ends a child that would wait for ever
        os._exit(0 if asyncio.run(THREADS.run(int)) == 0 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("way", ["run_and_wait", "run_to_end"])
async def test_a_cancelled_call_that_no_thread_has_begun_is_not_waited_for(way: str) -> None:
    threads, freed, calls = FileThreads("axon-tests", 1), threading.Event(), list[str]()
    hanging = threads.begin(freed.wait)
    waiting = asyncio.create_task(getattr(threads, way)(calls.append, "late"))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(waiting, 20.0)
    freed.set()
    assert await asyncio.wrap_future(hanging)
    await threads.run(len, "")
    assert not calls


async def test_a_call_that_gets_no_thread_is_never_made(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, calls = FileThreads("axon-tests", 2), list[str]()

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            await threads.run(calls.append, "lost")
    assert await threads.run(len, "abc") == 3
    assert not calls
