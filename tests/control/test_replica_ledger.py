"""Who pays for replicas' time: the tenant whose request started a cold one, and the owner of a pool."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from axon.control.replica_ledger import LedgeredTargets, Payers
from axon.domain.billing.replica_use import ReplicaUse, UseKind
from axon.domain.fleet.demand import Demand
from axon.domain.fleet.replica import Group, Launched, LaunchState
from axon.domain.fleet.sight import Sight, Target
from axon.domain.registry.scaling import Scaling, Window
from axon.domain.tenants.tenant import Limits, Plan, Tenant, Terms
from axon.errors import DependencyDown
from axon.runtime.clock import FakeClock
from tests.domain.fleet.builders import ONE, deployed, launched, present, registry

NOON = 43_200.0
COLD: dict[str, Any] = {"min_replicas": 0, "idle_s": 60.0, "scaling": Scaling(price_per_h=3.6, currency="EUR")}


class Books:
    """Store, tenants and turns that the test sets."""

    def __init__(self) -> None:
        self.uses: dict[str, ReplicaUse] = {}
        self.first: str | None = "acme"
        self.owners: dict[str, str] = {}
        self.is_away = False
        self.num_writes = 0

    async def add_replicas(self, uses: Sequence[ReplicaUse]) -> None:
        if self.is_away:
            raise DependencyDown("away")
        self.num_writes += bool(uses)
        for use in uses:
            old = self.uses.get(use.id)
            self.uses[use.id] = use if old is None else replace(old, seconds=max(old.seconds, use.seconds))

    async def first_unfinished(self, deployment: str, version: str) -> str | None:
        assert (deployment, version) == ("small", "small@v1")
        return self.first

    async def all(self) -> Sequence[Any]:
        return [
            Tenant(id=tenant, name="", plan="own", limits=Limits(pool=pool), place=0, created_at=0.0)
            for tenant, pool in self.owners.items()
        ]

    @property
    def plans(self) -> "Plans":
        return Plans()


class Plans:
    async def all(self) -> Sequence[Plan]:
        return []


class World:
    """A fleet of one deployment, looked at once a second."""

    def __init__(self, **changes: Any) -> None:
        self.clock, self.books = FakeClock(NOON), Books()
        self.snapshot = registry(deployed(**changes))
        self.launched: list[Launched] = []
        self.ready: set[str] = set()
        self.ledger = self.new_leader()

    def new_leader(self) -> LedgeredTargets:
        books: Any = self.books
        payers = Payers(turns=books, tenants=books, plans=books.plans, usage=books, defaults=Terms())

        async def targets(sight: Sight) -> Mapping[Group, Target]:
            return {ONE: Target(1, "somebody waits")}

        self.ledger = LedgeredTargets(targets, payers, self.clock)
        return self.ledger

    def start(self, group: Group = ONE, index: int = 0, state: LaunchState = LaunchState.STARTING) -> None:
        self.launched.append(replace(launched(group.replica(index), state), since=self.clock.now()))

    async def seconds(self, number: int) -> None:
        for _ in range(number):
            self.clock.advance(1.0)
            sight = Sight(
                snapshot=self.snapshot,
                launched=self.launched,
                presences=[present(name) for name in sorted(self.ready)],
                run_id="run",
                demand={ONE: Demand(waiting=1, unfinished=1)},
            )
            assert (await self.ledger(sight))[ONE].count == 1

    def spent(self) -> dict[tuple[str, str], float]:
        found: dict[tuple[str, str], float] = {}
        for use in self.books.uses.values():
            found[use.kind, use.tenant] = round(found.get((use.kind, use.tenant), 0.0) + use.seconds, 3)
        return found


async def test_the_tenant_whose_request_waited_pays_for_the_start_until_it_is_ready() -> None:
    world = World(**COLD)
    world.start()
    await world.seconds(12)
    world.ready.add("small#-0")
    await world.seconds(100)
    assert world.spent() == {(UseKind.COLD_START, "acme"): 13.0}
    (use,) = world.books.uses.values()
    assert (use.deployment, use.version, use.at) == ("small", "small@v1", NOON)
    assert (use.price_nanos, use.currency) == (3_600_000_000, "EUR")


async def test_another_leader_goes_on_with_the_same_start_and_who_pays_stays() -> None:
    world = World(**COLD)
    world.start()
    await world.seconds(5)
    world.books.first = "late"
    world.new_leader()
    await world.seconds(5)
    world.ready.add("small#-0")
    await world.seconds(30)
    assert world.spent() == {(UseKind.COLD_START, "acme"): 11.0}


async def test_a_start_whose_turn_is_not_in_the_store_yet_is_written_when_it_is() -> None:
    world = World(**COLD)
    world.books.first = None
    world.start()
    await world.seconds(3)
    assert world.spent() == {}
    world.books.first = "acme"
    await world.seconds(4)
    world.ready.add("small#-0")
    await world.seconds(1)
    assert world.spent() == {(UseKind.COLD_START, "acme"): 8.0}


@pytest.mark.parametrize("why", ["not cold", "by the clock", "warm"])
async def test_a_start_that_no_request_caused_is_nobodys(why: str) -> None:
    always = Scaling(floors=(Window(replicas=1),))
    changes = {"not cold": {"min_replicas": 1}, "by the clock": {**COLD, "scaling": always}, "warm": COLD}[why]
    world = World(**changes)
    if why == "warm":
        world.start(index=1, state=LaunchState.RUNNING)
        world.ready.add("small#-1")
    world.start()
    await world.seconds(20)
    assert world.spent() == {}


async def test_owners_of_a_pool_share_all_the_time_of_its_replicas_and_each_day_counts_for_itself() -> None:
    world = World(pool="gold", **COLD)
    world.books.owners = {"acme": "gold", "other": "gold", "third": ""}
    world.clock.advance(86_400.0 - NOON - 30.0)
    world.start(Group("small", "", "gold"), state=LaunchState.RUNNING)
    await world.seconds(90)
    spent = world.spent()
    assert set(spent) == {(UseKind.DEDICATED, "acme"), (UseKind.DEDICATED, "other")}
    assert all(75.0 / 2 <= seconds <= 90.0 / 2 for seconds in spent.values())
    days = {int(use.at // 86_400.0) for use in world.books.uses.values()}
    assert days == {0, 1}
    assert world.books.num_writes <= 8


async def test_books_that_are_away_stop_nothing_and_lose_no_start() -> None:
    world = World(**COLD)
    world.books.is_away = True
    world.start()
    await world.seconds(5)
    world.books.is_away = False
    await world.seconds(20)
    world.books.is_away = True
    world.ready.add("small#-0")
    await world.seconds(3)
    world.books.is_away = False
    await world.seconds(20)
    assert world.spent() == {(UseKind.COLD_START, "acme"): 26.0}
