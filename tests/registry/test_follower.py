"""A view of the registry: how soon it follows, when it counts as fresh, and that it never goes back."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from axon.adapters.live.memory.live import MemoryLive, open_memory_live
from axon.adapters.store.sqlite import SqliteStore
from axon.domain.registry.deployment import Alias
from axon.domain.registry.snapshot import Snapshot
from axon.errors import DependencyDown
from axon.registry.follower import FRESH_S, LOOK_S, STORE_S, TRUST_S, RegistryFollower
from axon.registry.holders import LEASE_S, SILENT_S, Holders
from axon.registry.revisions import Revisions
from axon.registry.writer import RegistryWriter
from axon.runtime.clock import FakeClock

ALIAS = Alias(name="best", deployment="small", created=1.0)


class Away:
    """A port that can be away, or answer with what it knew before."""

    def __init__(self, port: object) -> None:
        self.port, self.is_away = port, False
        self.calls: list[str] = []
        self.old: dict[str, object] = {}

    def __getattr__(self, name: str) -> Any:
        async def call(*args: object, **kwargs: object) -> object:
            self.calls.append(name)
            if self.is_away:
                raise DependencyDown
            if name in self.old:
                return self.old[name]
            return await getattr(self.port, name)(*args, **kwargs)

        return call


class World:
    def __init__(self, store: SqliteStore) -> None:
        self.clock = FakeClock()
        self.live: MemoryLive = open_memory_live(self.clock, retention_s=1.0)
        self.store, self.cache = Away(store.registry), Away(self.live.cache)
        self.revisions = Revisions(cast("Any", self.cache), self.live.wakeups)
        self.holders = Holders(cast("Any", self.cache))
        self.seen: list[int] = []
        self.follower = RegistryFollower(
            cast("Any", self.store),
            self.revisions,
            self.live.wakeups,
            self.clock,
            holders=self.holders,
            holder="gw_1",
            changed=lambda snapshot: self.seen.append(snapshot.revision),
        )
        self.writer = RegistryWriter(store.registry, self.clock, Revisions(self.live.cache, self.live.wakeups))
        self.silent = RegistryWriter(store.registry, self.clock)
        """A writer that cannot reach ``live``."""
        self._number = 0

    async def write(self, writer: RegistryWriter | None = None) -> None:
        self._number += 1
        edit = (None, replace(ALIAS, name=f"a{self._number}"))
        assert await (writer or self.writer).write([edit], actor="test")

    async def look(self, after_s: float = LOOK_S) -> int:
        self.clock.advance(after_s)
        await self.follower.look()
        return self.follower.snapshot.revision


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    store = SqliteStore(tmp_path / "axon.db")
    await store.open()
    yield World(store)
    await store.aclose()


async def test_before_the_first_look_a_view_is_empty_and_not_fresh(world: World) -> None:
    assert world.follower.snapshot == Snapshot()
    assert not world.follower.is_fresh
    await world.follower.open()
    assert world.follower.is_fresh


async def test_a_follower_does_not_open_without_the_store(world: World) -> None:
    world.store.is_away = True
    with pytest.raises(DependencyDown):
        await world.follower.open()


async def test_a_change_is_seen_at_the_next_look_at_live(world: World) -> None:
    await world.follower.open()
    await world.write()
    assert await world.look() == 1
    assert world.follower.is_fresh
    assert world.seen == [0, 1]


async def test_while_nothing_changes_the_store_is_asked_once_a_second_and_the_view_stays_fresh(world: World) -> None:
    await world.follower.open()
    await world.write()
    await world.look()
    world.store.calls.clear()
    for _ in range(20):  # five seconds
        world.clock.advance(LOOK_S)
        assert world.follower.is_fresh
        await world.follower.look()
    assert world.store.calls == ["revision"] * 5


async def test_a_change_that_live_was_not_told_of_is_seen_within_a_second(world: World) -> None:
    await world.follower.open()
    await world.write()
    await world.look()
    await world.write(world.silent)
    assert [await world.look() for _ in range(4)][-1] == 2
    assert await world.live.cache.get("registry/revision") == b"2", "live is mended, for the others"


async def test_a_live_that_has_lost_its_memory_is_asked_again_and_mended(world: World) -> None:
    await world.follower.open()
    await world.write()
    await world.look()
    world.live.lose_everything()
    await world.write(world.silent)
    assert await world.look() == 2
    assert world.follower.is_fresh
    assert await world.revisions.read() == 2


async def test_without_live_the_store_is_asked_at_every_look(world: World) -> None:
    await world.follower.open()
    world.cache.is_away = True
    await world.write()
    assert await world.look() == 1
    assert world.follower.is_fresh


async def test_without_the_store_live_confirms_for_a_while_and_then_the_view_is_stale(world: World) -> None:
    await world.follower.open()
    await world.write()
    await world.look()
    world.store.is_away = True
    for _ in range(int(TRUST_S / LOOK_S) - 1):
        await world.look()
        assert world.follower.is_fresh
    for _ in range(int(FRESH_S / LOOK_S) + 1):
        assert await world.look() == 1
    assert not world.follower.is_fresh
    world.store.is_away = False
    await world.look()
    assert world.follower.is_fresh


async def test_a_view_that_knows_of_a_newer_one_and_cannot_load_it_is_stale_within_a_second(world: World) -> None:
    await world.follower.open()
    await world.write()
    await world.look()
    world.store.is_away = True
    await world.write()
    for _ in range(int(FRESH_S / LOOK_S) + 1):
        assert await world.look() == 1
    assert not world.follower.is_fresh


async def test_a_process_that_was_paused_finds_its_view_stale_before_it_looks(world: World) -> None:
    await world.follower.open()
    assert world.follower.is_fresh
    world.clock.advance(FRESH_S + 0.01)
    assert not world.follower.is_fresh


async def test_an_answer_confirms_from_when_it_was_asked_for(world: World) -> None:
    await world.follower.open()
    revision = world.store.port.revision  # type: ignore[attr-defined]

    async def slow() -> int:
        world.clock.advance(STORE_S + 0.5)
        return int(await revision())

    world.store.port.revision = slow  # type: ignore[attr-defined]
    await world.look(after_s=STORE_S)
    assert not world.follower.is_fresh, "what it says may have been so before"


@pytest.mark.parametrize("behind", ["revision", "both"])
async def test_a_lower_revision_is_never_taken_and_confirms_nothing(world: World, behind: str) -> None:
    await world.write()
    old = await cast("Any", world.store).snapshot()
    await world.write()
    await world.follower.open()
    world.store.old = {"revision": 1 if behind == "both" else 3, "snapshot": old}
    for _ in range(int((TRUST_S + FRESH_S) / LOOK_S) + 1):
        assert await world.look() == 2
    if behind == "both":
        assert not world.follower.is_fresh
    assert world.seen == [2]


async def test_a_lower_revision_in_live_is_passed_over(world: World) -> None:
    """Two writers can tell of their changes in the wrong order."""
    await world.write()
    await world.write()
    await world.follower.open()
    await world.revisions.put(1)
    assert await world.look() == 2
    assert world.follower.is_fresh
    assert await world.revisions.read() == 2


async def test_a_hint_is_followed_at_once(world: World) -> None:
    await world.follower.open()
    async with asyncio.timeout(60.0), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(world.follower.run())
        for number in range(1, 6):
            await world.write()
            while world.follower.snapshot.revision < number:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0)
        running.cancel()


class TestHolders:
    async def test_a_holder_announces_what_it_holds_and_goes_silent_when_it_stops(self, world: World) -> None:
        await world.follower.open()
        assert await world.holders.all() == {"gw_1": 0}
        await world.write()
        await world.look(after_s=LEASE_S)
        assert await world.holders.behind(1) == frozenset()
        assert await world.holders.behind(2) == {"gw_1"}
        world.clock.advance(3 * LEASE_S + 0.1)
        assert await world.holders.all() == {}

    async def test_a_holder_that_leaves_is_not_waited_for(self, world: World) -> None:
        await world.follower.open()
        await world.follower.aclose()
        assert await world.holders.all() == {}

    async def test_holders_of_the_same_slot_get_one_each_and_a_full_house_is_told(self, world: World) -> None:
        few = [Holders(world.live.cache, num_slots=3) for _ in range(4)]
        told = [await few[number].announce(f"gw_{number}", number) for number in range(4)]
        assert told == [True, True, True, False]
        assert await few[0].all() == {"gw_0": 0, "gw_1": 1, "gw_2": 2}
        assert await few[0].announce("gw_0", 7)
        assert (await few[0].all())["gw_0"] == 7

    async def test_after_a_loss_of_memory_nobody_overwrites_anothers_slot(self, world: World) -> None:
        first, second = Holders(world.live.cache, num_slots=2), Holders(world.live.cache, num_slots=2)
        await first.announce("gw_1", 1)
        world.live.lose_everything()
        for number in range(2, 12):  # whichever of the slots it gets
            await second.announce(f"gw_{number}", number)
        await first.announce("gw_1", 1)
        assert len(await first.all()) == 2


def is_awaited(world: World) -> bool:
    """Now: it changes with the clock."""
    return world.follower.is_awaited


async def test_a_process_is_awaited_while_its_view_is_fresh_or_its_announcement_stands(world: World) -> None:
    await world.follower.open()
    world.store.is_away = True
    for _ in range(40):  # ten seconds without the store: it goes on to say which revision it holds
        await world.look()
        assert is_awaited(world)
    assert not world.follower.is_fresh
    world.cache.is_away = True
    await world.look(SILENT_S)
    assert not is_awaited(world), "its announcement has expired, and nobody waits for it"
    world.store.is_away = False
    await world.look()
    assert is_awaited(world)
    world.clock.advance(SILENT_S)
    assert not is_awaited(world), "a process that stood still finds that before it begins a turn"
