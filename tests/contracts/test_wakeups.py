"""The wakeups' contract. A hint may be lost, so a suite can ask only for what holds while nothing fails."""

import asyncio

import pytest

from axon.ports.live import Live, Wakeups


@pytest.fixture
def wakeups(live: Live) -> Wakeups:
    return live.wakeups


async def test_a_listener_hears_what_comes_after_it_began(wakeups: Wakeups) -> None:
    await wakeups.notify("c", b"early")
    async with wakeups.listen("c") as listener:
        await wakeups.notify("c", b"one")
        await wakeups.notify("c", b"two")
        assert [await listener.next(30.0), await listener.next(30.0)] == [b"one", b"two"]


async def test_nothing_to_hear_is_none_after_the_timeout(wakeups: Wakeups) -> None:
    async with wakeups.listen("c") as listener:
        assert await listener.next(0.01) is None


async def test_a_waiting_listener_is_woken(wakeups: Wakeups) -> None:
    async with wakeups.listen("c") as listener, asyncio.TaskGroup() as tasks:
        heard = tasks.create_task(listener.next(30.0))
        await asyncio.sleep(0)
        await wakeups.notify("c", b"up")
    assert heard.result() == b"up"


async def test_an_empty_payload_is_a_hint_too(wakeups: Wakeups) -> None:
    async with wakeups.listen("c") as listener:
        await wakeups.notify("c")
        assert await listener.next(30.0) == b""


async def test_every_listener_of_a_channel_hears_it_and_others_do_not(wakeups: Wakeups) -> None:
    async with wakeups.listen("c") as one, wakeups.listen("c") as two, wakeups.listen("d") as other:
        await wakeups.notify("c", b"x")
        assert [await one.next(30.0), await two.next(30.0)] == [b"x", b"x"]
        assert await other.next(0.01) is None


async def test_a_listener_who_left_does_not_silence_the_others(wakeups: Wakeups) -> None:
    async with wakeups.listen("c") as stays:
        async with wakeups.listen("c"):
            pass
        await wakeups.notify("c", b"x")
        assert await stays.next(30.0) == b"x"


async def test_a_slow_listener_hears_the_newest_and_the_notifier_never_waits(wakeups: Wakeups) -> None:
    async with wakeups.listen("c") as listener:
        for number in range(5_000):
            await wakeups.notify("c", str(number).encode())
        heard: list[int] = []
        while heard[-1:] != [4_999]:
            heard.append(int(await listener.next(30.0) or b"-1"))
            assert heard == sorted(heard)
