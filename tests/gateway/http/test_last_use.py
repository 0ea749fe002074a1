"""When a key was last used: to the minute, and in nobody's way."""

from collections.abc import Mapping

import pytest

from axon.domain.tenants.access import Access
from axon.errors import DependencyDown
from axon.gateway.http.last_use import _MAX_KEYS, LastUse
from axon.runtime.clock import FakeClock


class Keys:
    def __init__(self) -> None:
        self.written: list[dict[str, float]] = []
        self.is_away = False

    async def access(self, key_id: str) -> Access | None:
        raise AssertionError

    async def touch(self, used_at: Mapping[str, float]) -> None:
        if self.is_away:
            raise DependencyDown
        self.written.append(dict(used_at))


async def test_a_busy_key_is_written_once_a_minute() -> None:
    clock, keys = FakeClock(), Keys()
    last_use = LastUse(keys, clock)
    start = clock.now()
    for _ in range(180):
        last_use.note("busy")
        await last_use.write()
        clock.advance(1.0)
    assert keys.written == [{"busy": start}, {"busy": start + 60}, {"busy": start + 120}]


async def test_what_the_store_did_not_take_is_written_when_it_is_back() -> None:
    clock, keys = FakeClock(), Keys()
    last_use = LastUse(keys, clock)
    keys.is_away = True
    last_use.note("one")
    with pytest.raises(DependencyDown):
        await last_use.write()
    last_use.note("two")
    keys.is_away = False
    await last_use.write()
    await last_use.write()
    assert keys.written == [{"one": clock.now(), "two": clock.now()}]


async def test_many_keys_are_written_in_batches() -> None:
    keys = Keys()
    last_use = LastUse(keys, FakeClock())
    for number in range(1_200):
        last_use.note(f"k{number}")
    await last_use.write()
    assert [len(batch) for batch in keys.written] == [500, 500, 200]


async def test_many_keys_take_bounded_memory_while_the_store_is_away() -> None:
    last_use = LastUse(Keys(), FakeClock())
    for number in range(_MAX_KEYS + 5):
        last_use.note(f"k{number}")
    assert len(last_use._unwritten) == len(last_use._noted) == _MAX_KEYS
