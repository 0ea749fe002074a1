"""From a gateway's turns to the leader's abort: a version that errs, one that is 2× slower and one that is mute."""

import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from pathlib import Path

import pytest

from axon.adapters.store.sqlite import SqliteStore
from axon.domain.registry.deployment import MemberState
from axon.domain.registry.rollout import RolloutState
from axon.domain.registry.samples import Observed, Outcome
from axon.registry.observing import Observing
from axon.runtime.clock import FakeClock
from tests.control.test_rollouts import World

TURNS_PER_S = 20
SHARE = 0.5
TOKENS = 50


@dataclass(frozen=True)
class Version:
    """What a version's turns are like."""

    errors: float = 0.005
    slower: float = 1.0
    is_mute: bool = False


class Traffic:
    """Turns of both versions at two gateways, on the world's clock."""

    def __init__(self, world: World, new: Version) -> None:
        self.world, self.versions = world, {"small@v1": Version(), "small@v2": new}
        self.random, self.numbers = random.Random(7), count()
        self.due: list[tuple[float, int, Callable[[], None]]] = []
        self.gateways: list[Observing] = []

    async def open(self) -> None:
        view = await self.world.store.registry.snapshot()
        self.gateways = [
            Observing(
                self.world.observations,
                gateway=f"gw-{number}",
                snapshot=lambda: view,
                monotonic=self.world.clock.monotonic,
            )
            for number in range(2)
        ]

    async def run_until_over(self, *, most_s: int) -> None:
        for _ in range(most_s):
            self.second()
            for gateway in self.gateways:
                await gateway.flush()
            await self.world.leader.look()
            if (await self.world.rollout()).state.is_over:
                return

    def second(self) -> None:
        end = self.world.clock.now() + 1.0
        for _ in range(TURNS_PER_S):
            self.at(end - self.random.random(), self.turn)
        while self.due and self.due[0][0] <= end:
            at, _, act = heappop(self.due)
            self.world.clock.advance(max(0.0, at - self.world.clock.now()))
            act()
        self.world.clock.advance(end - self.world.clock.now())

    def at(self, at: float, act: Callable[[], None]) -> None:
        heappush(self.due, (at, next(self.numbers), act))

    def turn(self) -> None:
        name, now = f"turn-{next(self.numbers)}", self.world.clock.now()
        version = "small@v2" if self.random.random() < SHARE else "small@v1"
        like, gateway = self.versions[version], self.random.choice(self.gateways)
        gateway.begun(name, "small", version, is_first=True)
        gateway.followed(name)
        if like.is_mute:
            return
        if self.random.random() < like.errors:
            self.at(now + self.random.random(), lambda: gateway.ended(name, Outcome.ERROR))
            return
        first = now + like.slower * self.random.lognormvariate(-1.0, 0.6)
        end = first + like.slower * TOKENS * self.random.lognormvariate(-4.0, 0.25)
        self.at(first, lambda: gateway.answered(name))
        self.at(end, lambda: gateway.ended(name, Outcome.OK, num_tokens=TOKENS))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    store = SqliteStore(tmp_path / "axon.db")
    await store.open()
    world = World(store, FakeClock())
    await world.fill()
    await world.begun()
    yield world
    await store.aclose()


async def seen(world: World) -> Observed:
    return sum((await world.observations.all((await world.rollout()).id)).values(), Observed())


@pytest.mark.parametrize(
    ("new", "words", "state"),
    [
        (Version(errors=1.0), "errs", MemberState.FAILED),
        (Version(errors=0.2), "errs", MemberState.FAILED),
        (Version(slower=2.0), "is slower", MemberState.DRAINING),
        (Version(is_mute=True), "is mute", MemberState.FAILED),
    ],
    ids=["errs always", "errs often", "is slower", "is mute"],
)
async def test_a_bad_version_is_aborted_soon_after_its_first_200_turns(
    world: World, new: Version, words: str, state: MemberState
) -> None:
    traffic = Traffic(world, new)
    await traffic.open()
    await traffic.run_until_over(most_s=120)
    over = await world.rollout()
    assert over.state is RolloutState.ABORTED
    assert f"small@v2 {words}" in over.reason
    assert await world.state("small@v2") is state
    counted = await seen(world)
    assert min(counted.new.begun, counted.old.begun) >= 200
    assert counted.new.begun < 1000


async def test_a_version_that_is_as_good_goes_through_all_its_steps(world: World) -> None:
    traffic = Traffic(world, Version())
    await traffic.open()
    await traffic.run_until_over(most_s=200)
    assert (await world.rollout()).state is RolloutState.PROMOTED
