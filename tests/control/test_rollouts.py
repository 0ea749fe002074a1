"""The leader's part in rollouts: it begins, steps, promotes and aborts, and never over somebody else's change."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from axon.adapters.live.memory.live import open_memory_live
from axon.adapters.store.sqlite import SqliteStore
from axon.control.golden import GoldenChecks
from axon.control.rollouts import Rollouts
from axon.domain.model.served_version import ServedVersion
from axon.domain.presence import Load, Presence
from axon.domain.registry import steps
from axon.domain.registry.deployment import Deployment, MemberState
from axon.domain.registry.golden import Golden
from axon.domain.registry.model import Model
from axon.domain.registry.rollout import Rollout, RolloutState
from axon.domain.registry.samples import Observed, Samples
from axon.domain.registry.snapshot import first_version
from axon.domain.registry.warmth import cold_pools
from axon.registry.catalog import Catalog
from axon.registry.observations import Observations
from axon.registry.writer import RegistryWriter
from axon.runtime.clock import FakeClock
from tests.domain.registry.builders import deployment, nobody_pinned, version

PLANNED = Rollout(id="", old="", new="small@v2", steps=(1000, 5000), bake_s=60.0, began=0.0)


def presence(version: str, *, pool: str = "", draining: bool = False, worker: str = "") -> Presence:
    served = ServedVersion(name="small", version=version, max_model_len=2048, created=1.0)
    return Presence(
        worker=worker or f"{version}-{pool}",
        incarnation="1",
        deployment=served,
        load=Load(slots=4, free_slots=4, num_tokens=0),
        pool=pool,
        draining=draining,
        at=1.0,
    )


class World:
    def __init__(self, store: SqliteStore, clock: FakeClock) -> None:
        self.store, self.clock = store, clock
        self.live = open_memory_live(clock, retention_s=60.0)
        writer = RegistryWriter(store.registry, clock)
        self.catalog = Catalog(store.registry, writer, clock, pinned=nobody_pinned)
        self.observations = Observations(self.live.cache)
        self.answer = "Paris"
        self.golden = GoldenChecks(self.ask)
        self.leader = self.another()
        self.observed = Observed()

    def another(self, golden: GoldenChecks | None = None) -> Rollouts:
        writer = RegistryWriter(self.store.registry, self.clock)
        return Rollouts(
            self.store.registry,
            writer,
            self.observations,
            self.live.presences,
            self.clock,
            golden=golden or self.golden,
        )

    async def ask(self, deployment: str, version: str, golden: Golden) -> str:
        return self.answer

    async def fill(self) -> None:
        """A deployment whose first version serves."""
        await self.catalog.add_model(Model(name="small", created=0.0), version("v1"), deploys=True, actor="test")
        await self.catalog.add_version(version("v2"), actor="test")
        await self.up("small@v1")
        await self.leader.look()

    async def up(self, version: str, pool: str = "") -> None:
        assert await self.live.presences.put(presence(version, pool=pool), ttl_s=1e6)

    async def start(self, planned: Rollout = PLANNED) -> None:
        await self.catalog.start_rollout("small", planned, actor="test")

    async def deployment(self) -> Deployment:
        return (await self.store.registry.snapshot()).deployments["small"]

    async def rollout(self) -> Rollout:
        rollout = (await self.deployment()).rollout
        assert rollout is not None
        return rollout

    async def change(self, act: Callable[[Deployment], Deployment]) -> None:
        await self.catalog.change_deployment("small", act, actor="test")

    async def state(self, version: str) -> MemberState:
        member = (await self.deployment()).member(version)
        assert member is not None
        return member.state

    async def begun(self, planned: Rollout = PLANNED) -> None:
        """A rollout at its first step."""
        await self.start(planned)
        await self.up("small@v2")
        await self.looks(3)
        assert (await self.rollout()).state is RolloutState.RUNNING

    async def looks(self, num: int) -> None:
        for _ in range(num):
            self.clock.advance(1.0)
            await self.leader.look()

    async def serve(self, new: Samples, num_s: int, old: Samples | None = None) -> None:
        """So many seconds of this, on one gateway."""
        rollout_id = (await self.rollout()).id
        for _ in range(num_s):
            self.observed += Observed(old=old or Samples(begun=10), new=new)
            await self.observations.put(rollout_id, "gw-1", self.observed)
            await self.looks(1)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    store = SqliteStore(tmp_path / "axon.db")
    await store.open()
    world = World(store, FakeClock())
    await world.fill()
    yield world
    await store.aclose()


class TestColdPools:
    def test_a_version_has_to_serve_its_deployments_pool_and_those_of_the_stable_version(self) -> None:
        small = replace(deployment(), pool="gpu")
        stable = [presence("small@v1", pool="gpu"), presence("small@v1", pool="gold")]
        assert cold_pools(small, "small@v2", stable) == {"gpu", "gold"}
        assert cold_pools(small, "small@v2", [*stable, presence("small@v2", pool="gpu")]) == {"gold"}

    def test_a_worker_that_drains_warms_nothing(self) -> None:
        assert cold_pools(deployment(), "small@v2", [presence("small@v2", draining=True)]) == {""}


class TestReady:
    async def test_a_version_is_ready_when_it_has_a_worker(self, world: World) -> None:
        assert await world.state("small@v1") is MemberState.READY

    async def test_a_rollout_waits_for_a_worker_in_every_pool_and_says_so(self, world: World) -> None:
        await world.up("small@v1", "gold")
        await world.start()
        await world.up("small@v2")
        await world.looks(3)
        going = await world.rollout()
        assert (going.state, going.share) == (RolloutState.WAITING, 0)
        assert going.reason == "no worker with small@v2 in gold"
        assert await world.state("small@v2") is MemberState.REGISTERED
        await world.up("small@v2", "gold")
        await world.looks(2)
        going = await world.rollout()
        assert (going.state, going.share, going.reason) == (RolloutState.RUNNING, 1000, "")

    async def test_a_rollout_that_waits_is_written_once_and_not_with_every_look(self, world: World) -> None:
        await world.start()
        await world.looks(1)
        revision = await world.store.registry.revision()
        await world.looks(5)
        assert await world.store.registry.revision() == revision


class TestGolden:
    PLANNED = replace(PLANNED, golden=(Golden(prompt="The capital of France?", expected="Paris"),))

    async def test_a_version_that_passes_begins(self, world: World) -> None:
        await world.start(self.PLANNED)
        await world.up("small@v2")
        await world.looks(3)
        assert (await world.rollout()).reason == "its golden prompts are being asked"
        assert await world.state("small@v2") is MemberState.REGISTERED
        await world.golden.look()
        await world.looks(2)
        assert (await world.rollout()).state is RolloutState.RUNNING

    async def test_a_version_that_does_not_pass_is_aborted_and_may_be_tried_again(self, world: World) -> None:
        world.answer = "London"
        await world.start(self.PLANNED)
        await world.up("small@v2")
        await world.looks(1)
        await world.golden.look()
        await world.looks(1)
        over = await world.rollout()
        assert over.state is RolloutState.ABORTED
        assert "'London' does not contain 'Paris'" in over.reason
        await world.looks(2)
        assert await world.state("small@v2") is MemberState.DRAINING
        world.answer = "Paris"
        await world.start(self.PLANNED)
        await world.looks(1)
        await world.golden.look()
        await world.looks(2)
        assert (await world.rollout()).state is RolloutState.RUNNING


class TestSteps:
    async def test_a_good_version_is_stepped_on_and_promoted(self, world: World) -> None:
        await world.begun()
        shares = []
        for _ in range(3):
            shares.append((await world.rollout()).share)
            await world.serve(Samples(begun=5), 60)
        done = await world.deployment()
        assert shares == [1000, 5000, 0]
        assert (await world.rollout()).state is RolloutState.PROMOTED
        assert done.stable == first_version(done, "any", is_fresh=True) == "small@v2"
        assert await world.state("small@v1") is MemberState.DRAINING

    async def test_a_paused_rollout_stays_where_it_is_and_goes_on_when_resumed(self, world: World) -> None:
        await world.begun()
        await world.change(steps.pause)
        await world.serve(Samples(begun=5), 100)
        assert (await world.rollout()).share == 1000
        await world.change(lambda old: steps.resume(old, now=world.clock.now()))
        await world.serve(Samples(begun=5), 61)
        assert (await world.rollout()).share == 5000

    async def test_a_version_that_has_lost_its_workers_is_not_stepped_on_and_the_rollout_says_so(
        self, world: World
    ) -> None:
        await world.begun()
        await world.live.presences.drop(presence("small@v2"))
        await world.serve(Samples(begun=5), 100)
        held = await world.rollout()
        assert (held.state, held.share) == (RolloutState.RUNNING, 1000)
        assert held.reason == "no worker with small@v2 in the shared pool"
        await world.up("small@v2")
        await world.looks(1)
        assert ((await world.rollout()).reason, (await world.rollout()).share) == ("", 5000)

    async def test_a_version_in_doubt_is_not_stepped_on(self, world: World) -> None:
        await world.begun()
        await world.serve(Samples(begun=1, errors=1), 120)
        going = await world.rollout()
        assert (going.state, going.share) == (RolloutState.RUNNING, 1000)


class TestAborts:
    @pytest.mark.parametrize("bad", [Samples(begun=5, errors=5), Samples(begun=5, mute=4)])
    async def test_a_version_that_errs_or_is_mute_fails_so_that_its_sessions_are_moved(
        self, world: World, bad: Samples
    ) -> None:
        await world.begun()
        with capture_logs() as logs:
            await world.serve(bad, 50)
        over = await world.rollout()
        assert over.state is RolloutState.ABORTED
        assert "small@v2" in over.reason
        assert await world.state("small@v2") is MemberState.FAILED
        assert first_version(await world.deployment(), "any", is_fresh=True) == "small@v1"
        (said,) = [each for each in logs if each["event"] == "rollout.aborted"]
        assert (said["deployment"], said["reason"], said["moves"]) == ("small", over.reason, True)

    async def test_a_slower_version_drains_with_its_sessions(self, world: World) -> None:
        await world.begun()
        await world.serve(Samples(begun=5, ttft={150: 5}), 50, old=Samples(begun=10, ttft={130: 10}))
        assert (await world.rollout()).state is RolloutState.ABORTED
        assert await world.state("small@v2") is MemberState.DRAINING

    async def test_a_paused_rollout_is_aborted_too(self, world: World) -> None:
        await world.begun()
        await world.change(steps.pause)
        await world.serve(Samples(begun=5, errors=5), 50)
        assert (await world.rollout()).state is RolloutState.ABORTED

    async def test_the_samples_of_a_gateway_that_is_gone_still_count(self, world: World) -> None:
        await world.begun()
        await world.serve(Samples(begun=5, errors=5), 39)
        gone = (await world.rollout()).id
        await world.live.cache.drop(f"rollout/{gone}/gw-1")
        await world.observations.put(gone, "gw-2", Observed(old=Samples(begun=10), new=Samples(begun=5)))
        await world.looks(1)
        assert (await world.rollout()).state is RolloutState.ABORTED

    async def test_every_action_is_in_the_audit_trail(self, world: World) -> None:
        await world.begun()
        await world.serve(Samples(begun=5, errors=5), 50)
        changes = await world.catalog.changes(after=0, limit=100)
        mine = [change.after for change in changes if change.actor == "control"]
        assert "aborted" in mine[-1]


class TestOthers:
    async def test_a_leader_that_was_outrun_does_not_overwrite_the_change(self, world: World) -> None:
        await world.begun()
        stale = await world.deployment()
        await world.change(lambda old: steps.rollback(old, now=world.clock.now()))
        await world.leader._write(stale, steps.step(stale, now=world.clock.now()), "rollout.stepped")
        assert (await world.rollout()).state is RolloutState.ROLLED_BACK

    async def test_two_leaders_at_once_step_once(self, world: World) -> None:
        await world.begun()
        other = world.another()
        world.clock.advance(60.0)
        for leader in (world.leader, other):
            await leader.look()
        assert (await world.rollout()).step == 1

    async def test_a_new_leader_counts_from_its_first_look(self, world: World) -> None:
        await world.begun()
        await world.serve(Samples(begun=5, errors=5), 30)
        world.leader = world.another()
        await world.serve(Samples(begun=5), 30)
        assert (await world.rollout()).state is RolloutState.RUNNING
