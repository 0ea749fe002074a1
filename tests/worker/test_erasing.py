"""Copies of KV blocks go with their session, whether the worker hears of it at once or finds the tombstone later."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from axon.adapters.live.memory.live import open_memory_live
from axon.domain.session.erasure import blocks_mark, session_mark, session_of_blocks, turn_mark
from axon.ports.live import ERASURES
from axon.runtime.clock import FakeClock
from axon.worker.erasing import Erasing, Kept

DAY_S = 86400.0


class Engines:
    """A supervisor as far as erasures are concerned."""

    def __init__(self) -> None:
        self.engine_pid: int | None = 1
        self.is_up = True
        self.erased: list[str] = []

    def erase(self, sessions: list[str]) -> bool:
        if self.is_up:
            self.erased += sessions
        return self.is_up


class Marks:
    """Tombstones with their times."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.put_at: dict[str, float] = {}

    def put(self, mark: str, *, age_s: float = 0.0) -> None:
        self.put_at[mark] = self._clock.now() - age_s

    async def since(self, at: float) -> Sequence[str]:
        return [mark for mark, put_at in self.put_at.items() if put_at >= at]


def make(clock: FakeClock, wakeups: Any = None) -> tuple[Erasing, Engines, Marks]:
    engines, marks = Engines(), Marks(clock)
    kept = Kept(cast("Any", marks), DAY_S)
    return Erasing(cast("Any", engines), kept, wakeups, clock), engines, marks


def test_marks_name_the_session_whose_blocks_go() -> None:
    marks = [session_mark("conv_1"), blocks_mark("resp_1", "conv/2"), turn_mark("resp_1"), blocks_mark("chat", "chat")]
    assert [session_of_blocks(mark) for mark in marks] == ["conv_1", "conv/2", "", "chat"]


async def test_a_new_engine_learns_all_that_it_may_still_hold() -> None:
    clock = FakeClock()
    erasing, engines, marks = make(clock)
    marks.put(session_mark("old"), age_s=2 * DAY_S)
    marks.put(session_mark("missed"), age_s=DAY_S / 2)
    await erasing.look()
    assert engines.erased == ["missed"]
    clock.advance(600)
    await erasing.look()
    assert engines.erased == ["missed"], "an engine that knows it is not told again"
    engines.engine_pid = 2
    await erasing.look()
    assert engines.erased == ["missed", "missed"], "one that was started since may hold it in its files"


async def test_what_could_not_be_told_is_told_later() -> None:
    clock = FakeClock()
    erasing, engines, marks = make(clock)
    await erasing.look()
    engines.is_up = False
    marks.put(blocks_mark("resp_1", "conv_1"))
    for _ in range(10):
        clock.advance(30)
        await erasing.look()
    engines.is_up = True
    await erasing.look()
    assert engines.erased == ["conv_1"]


async def test_what_is_announced_is_erased_at_once() -> None:
    live = open_memory_live(FakeClock(), retention_s=60.0)
    erasing, engines, _ = make(FakeClock(), live.wakeups)
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        listening = tasks.create_task(erasing.listen())
        while not engines.erased:
            await live.wakeups.notify(ERASURES, session_mark("conv_1").encode())
            await asyncio.sleep(0)
        listening.cancel()
    assert set(engines.erased) == {"conv_1"}
