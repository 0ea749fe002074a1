"""Drains: when a version is closed, and what must be so before it is removed."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from axon.adapters.live.memory.live import MemoryLive, open_memory_live
from axon.adapters.store.sqlite import SqliteStore
from axon.control.drains import PIN_S, Drains
from axon.domain.registry.deployment import Deployment, FreedLetter, Member, MemberState
from axon.domain.registry.rollout import RolloutState
from axon.registry.holders import LEASE_S, SILENT_S, Holders
from axon.registry.writer import RegistryWriter
from axon.runtime.clock import FakeClock
from tests.domain.registry.builders import deployment, rollout

ACCEPT_S, AGE_S = 2.0, 3600.0
LIST = ["barrier", "unfinished", "pinned", "waiting"]


class Uses:
    """Counts that the test sets; a count is only right after a barrier."""

    def __init__(self) -> None:
        self.numbers = {"unfinished": 0, "pinned": 0, "waiting": 0}
        self.asked: list[str] = []
        self.meanwhile: Callable[[], Awaitable[None]] | None = None
        """What somebody else does while the lanes are counted."""

    async def barrier(self) -> None:
        self.asked.append("barrier")

    async def pinned(self, version: str) -> int:
        return self._count("pinned")

    async def unfinished(self, deployment: str, version: str) -> int:
        return self._count("unfinished")

    async def waiting(self, deployment: Deployment, member: Member) -> int:
        if self.meanwhile is not None:
            await self.meanwhile()
        return self._count("waiting")

    def _count(self, what: str) -> int:
        assert "barrier" in self.asked, f"{what} is counted before the barrier"
        self.asked.append(what)
        return self.numbers[what]


class World:
    def __init__(self, store: SqliteStore) -> None:
        self.clock, self.registry, self.uses = FakeClock(), store.registry, Uses()
        self.live: MemoryLive = open_memory_live(self.clock, retention_s=1.0)
        self.writer = RegistryWriter(store.registry, self.clock)
        self.holders = Holders(self.live.cache)
        self.held: dict[str, int] = {}
        """What each gateway announces at every look."""
        self.drains = self.leader()

    def leader(self, min_age_s: float = 0.0) -> Drains:
        return Drains(
            self.registry,
            self.writer,
            self.holders,
            self.live.leases,
            self.uses,
            self.clock,
            accept_timeout_s=ACCEPT_S,
            max_age_s=AGE_S,
            min_age_s=min_age_s,
        )

    async def begin(self, state: MemberState, **changes: object) -> None:
        """The version ``small@v2`` is on its way out of a deployment."""
        member = Member(version="small@v2", letter="b", state=state, since=self.clock.now())
        made = replace(deployment(), members=(deployment().members[0], member))
        await self.writer.write([(None, replace(made, **changes))], actor="test")  # type: ignore[arg-type]

    async def look(self, after_s: float = 0.0, drains: Drains | None = None) -> MemberState | None:
        """The member's state after time has passed and it was looked at; None for a removed one."""
        self.clock.advance(after_s)
        for holder, revision in self.held.items():
            await self.holders.announce(holder, revision)
        self.uses.asked.clear()
        await (drains or self.drains).look()
        member = (await self.registry.snapshot()).deployments["small"].member("small@v2")
        return None if member is None else member.state


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    store = SqliteStore(tmp_path / "axon.db")
    await store.open()
    yield World(store)
    await store.aclose()


class TestClosing:
    @pytest.mark.parametrize("state", [MemberState.DRAINING, MemberState.FAILED])
    async def test_a_version_is_closed_when_nobody_is_pinned_to_it(self, world: World, state: MemberState) -> None:
        await world.begin(state)
        world.uses.numbers["pinned"] = 1
        assert await world.look() is state
        assert await world.look(PIN_S) is state
        world.uses.numbers["pinned"] = 0
        assert await world.look(1.0) is MemberState.CLOSED
        (_, change) = await world.registry.changes(after=0, limit=9)
        assert change.actor == "control"

    async def test_a_drain_lasts_as_long_as_a_pin_whose_turn_is_not_accepted(self, world: World) -> None:
        await world.begin(MemberState.DRAINING)
        assert await world.look() is MemberState.DRAINING
        assert await world.look(PIN_S - 1.0) is MemberState.DRAINING
        assert await world.look(1.0) is MemberState.CLOSED

    async def test_an_old_version_stays_for_a_while_so_that_a_rollout_can_be_taken_back(self, world: World) -> None:
        world.drains = world.leader(min_age_s=3 * PIN_S)
        await world.begin(MemberState.DRAINING)
        await world.look()
        assert await world.look(2 * PIN_S) is MemberState.DRAINING
        assert await world.look(PIN_S) is MemberState.CLOSED

    async def test_a_version_that_failed_is_not_kept_for_that(self, world: World) -> None:
        world.drains = world.leader(min_age_s=3 * PIN_S)
        await world.begin(MemberState.FAILED)
        await world.look()
        assert await world.look(PIN_S) is MemberState.CLOSED

    async def test_a_version_of_some_age_is_closed_though_sessions_are_pinned(self, world: World) -> None:
        await world.begin(MemberState.DRAINING)
        world.uses.numbers["pinned"] = 5
        await world.look()
        assert await world.look(AGE_S) is MemberState.DRAINING
        assert await world.look(1.0) is MemberState.CLOSED
        for _ in range(4):
            assert await world.look(SILENT_S) is MemberState.CLOSED, "it is not removed while they are"
        world.uses.numbers["pinned"] = 0
        assert await world.look(1.0) is None

    @pytest.mark.parametrize("state", [MemberState.REGISTERED, MemberState.READY])
    async def test_a_version_that_is_in_use_stays(self, world: World, state: MemberState) -> None:
        await world.begin(state)
        for _ in range(3):
            assert await world.look(PIN_S) is state

    async def test_a_version_that_is_stable_or_being_rolled_out_stays(self, world: World) -> None:
        await world.begin(MemberState.DRAINING, rollout=rollout(state=RolloutState.PAUSED))
        for _ in range(3):
            assert await world.look(PIN_S) is MemberState.DRAINING
        now = (await world.registry.snapshot()).deployments["small"]
        await world.writer.write([(now, replace(now, rollout=None, stable="small@v2"))], actor="test")
        for _ in range(3):
            assert await world.look(PIN_S) is MemberState.DRAINING


class TestRemoval:
    async def closed(self, world: World) -> None:
        await world.begin(MemberState.CLOSED)
        world.held = {"gw_1": 1, "gw_2": 1}
        assert await world.look() is MemberState.CLOSED

    async def wait(self, world: World) -> MemberState | None:
        """The look after everybody could have spoken, and then the one after the accept timeout."""
        assert await world.look(SILENT_S) is MemberState.CLOSED
        return await world.look(ACCEPT_S)

    async def test_a_closed_version_is_removed_when_nothing_is_left_of_it(self, world: World) -> None:
        await self.closed(world)
        assert await self.wait(world) is None
        assert world.uses.asked == LIST
        found = (await world.registry.snapshot()).deployments["small"]
        assert found.freed == (FreedLetter(letter="b", at=world.clock.now()),)
        assert [member.version for member in found.members] == ["small@v1"]

    async def test_a_gateway_with_an_older_view_is_waited_for(self, world: World) -> None:
        await self.closed(world)
        world.held["gw_2"] = 0
        for _ in range(5):
            assert await world.look(SILENT_S) is MemberState.CLOSED
        world.held["gw_2"] = 1
        assert await world.look(LEASE_S) is MemberState.CLOSED, "what it began may not be accepted yet"
        assert await world.look(ACCEPT_S) is None

    async def test_a_gateway_that_is_not_heard_of_is_waited_for_three_leases(self, world: World) -> None:
        await self.closed(world)
        world.held = {}
        assert await world.look(SILENT_S - 0.1) is MemberState.CLOSED
        assert await world.look(0.2) is MemberState.CLOSED
        assert await world.look(ACCEPT_S) is None

    async def test_when_live_has_lost_its_memory_the_wait_begins_again(self, world: World) -> None:
        await self.closed(world)
        assert await world.look(SILENT_S) is MemberState.CLOSED
        world.live.lose_everything()
        world.held = {}
        assert await world.look(ACCEPT_S) is MemberState.CLOSED
        assert await world.look(SILENT_S - 0.1) is MemberState.CLOSED
        world.held = {"gw_2": 0}  # it was cut off, and is back with what it knew
        assert await world.look(0.1) is MemberState.CLOSED
        assert await world.look(ACCEPT_S) is MemberState.CLOSED

    async def test_a_new_leader_waits_anew(self, world: World) -> None:
        await self.closed(world)
        await world.look(SILENT_S)
        other = world.leader()
        assert await world.look(ACCEPT_S, other) is MemberState.CLOSED
        assert await world.look(SILENT_S, other) is MemberState.CLOSED
        assert await world.look(ACCEPT_S, other) is None

    @pytest.mark.parametrize("what", ["unfinished", "pinned", "waiting"])
    async def test_what_is_left_of_it_keeps_it(self, world: World, what: str) -> None:
        await self.closed(world)
        world.uses.numbers[what] = 1
        assert await self.wait(world) is MemberState.CLOSED
        assert await world.look(SILENT_S) is MemberState.CLOSED
        world.uses.numbers[what] = 0
        assert await world.look() is None

    async def test_a_change_in_between_is_not_overwritten(self, world: World) -> None:
        await self.closed(world)
        await world.look(SILENT_S)

        async def widen() -> None:
            now = (await world.registry.snapshot()).deployments["small"]
            await world.writer.write([(now, replace(now, max_replicas=now.max_replicas + 1))], actor="test")

        world.uses.meanwhile = widen
        assert await world.look(ACCEPT_S) is MemberState.CLOSED
        assert (await world.registry.snapshot()).deployments["small"].max_replicas == 2
        world.uses.meanwhile = None
        assert await world.look() is None
