"""A listener's wait ends with a payload or at its deadline, whatever timer an earlier wait has left behind."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import pytest

from axon.adapters.live.buffered_listener import BufferedListener
from tests.sim.loop import SimLoop

T = TypeVar("T")


def run(work: Awaitable[T]) -> T:
    return SimLoop().run(work)


def test_a_wait_after_a_longer_one_ends_at_its_own_deadline() -> None:
    async def work() -> tuple[bytes | None, float]:
        listener, loop = BufferedListener(4), asyncio.get_running_loop()
        loop.call_later(0.1, listener.put, b"x")
        assert await listener.next(60.0) == b"x"
        began = loop.time()
        return await listener.next(0.5), loop.time() - began

    payload, waited_s = run(work())
    assert payload is None
    assert waited_s == pytest.approx(0.5)


def test_a_wait_after_a_shorter_one_is_not_ended_by_its_timer() -> None:
    async def work() -> tuple[bytes | None, float]:
        listener, loop = BufferedListener(4), asyncio.get_running_loop()
        loop.call_later(0.1, listener.put, b"x")
        assert await listener.next(0.5) == b"x"
        began = loop.time()
        return await listener.next(3.0), loop.time() - began

    payload, waited_s = run(work())
    assert payload is None
    assert waited_s == pytest.approx(3.0)


def test_a_wait_that_was_cancelled_leaves_the_next_payload_to_the_next_wait() -> None:
    async def work() -> bytes | None:
        listener = BufferedListener(4)
        waiting = asyncio.ensure_future(listener.next(5.0))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        listener.put(b"x")
        return await listener.next(5.0)

    assert run(work()) == b"x"


def test_a_payload_whose_listener_was_cancelled_at_that_moment_is_kept() -> None:
    async def work() -> bytes | None:
        listener = BufferedListener(4)
        waiting = asyncio.ensure_future(listener.next(5.0))
        await asyncio.sleep(0)
        listener.put(b"x")
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return await listener.next(0.0)

    assert run(work()) == b"x"


def test_two_tasks_do_not_share_a_listener() -> None:
    async def work() -> None:
        listener = BufferedListener(4)
        waiting = asyncio.ensure_future(listener.next(5.0))
        await asyncio.sleep(0)
        with pytest.raises(AssertionError):
            await listener.next(5.0)
        waiting.cancel()

    run(work())
