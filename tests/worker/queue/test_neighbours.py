"""A tenant that uses two deployments on the same cores has one share of them, not two."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from axon.adapters.live.memory.shares import MemoryShares
from axon.worker.queue.neighbours import ACTIVE_S, Neighbours, Work, carried_over, units_of_other
from axon.worker.queue.served import LEVEL, Served

_TENANTS = st.sampled_from(["a", "b", "c"])


def test_a_unit_is_worth_its_seconds_at_the_other_pool() -> None:
    chat, embeddings = Work(seconds=10.0, cost=1000.0), Work(seconds=1.0, cost=10_000.0)
    assert units_of_other(embeddings, chat) == 0.01
    assert units_of_other(chat, embeddings) == 100.0
    assert units_of_other(chat, Work()) == 1.0


@given(
    st.dictionaries(_TENANTS, st.floats(0, 1e6)), st.dictionaries(_TENANTS, st.floats(0, 100)), st.floats(0.001, 1000)
)
def test_only_tenants_that_were_active_there_lately_are_charged_there(
    amounts: dict[str, float], active_at: dict[str, float], units: float
) -> None:
    now = 50.0
    charged = carried_over(amounts, active_at, now, units)
    for tenant, amount in amounts.items():
        is_active = now - active_at.get(tenant, -1000.0) < ACTIVE_S
        assert charged.get(tenant, 0.0) == (amount * units if is_active else 0.0)


class World:
    """Two pools, each with one worker that serves the tenant that its counters put first; a round is a second."""

    def __init__(self, *, neighbours: bool) -> None:
        self.shares, self.now = MemoryShares(), 1000.0
        pools = ("chat", "embeddings")
        others = pools if neighbours else ()
        self._pools = {
            name: (Served(), Neighbours(self.shares, name, lambda: others, lambda: self.now)) for name in pools
        }
        self.had: dict[tuple[str, str], float] = {}

    async def serve(self, pool: str, waiting: list[str], cost: float) -> str:
        """Serves the tenant of those waiting that had the least, for half a second of the cores."""
        served, near = self._pools[pool]
        tenant = min(waiting, key=lambda each: (served.of(each), each))
        served.charge(tenant, cost)
        near.served(cost)
        near.worked(0.5)
        self.had[pool, tenant] = self.had.get((pool, tenant), 0.0) + 0.5
        amounts = served.take()
        asked = [LEVEL, *waiting]
        found = await self.shares.charge(pool, {**amounts, LEVEL: 0.0}, floor=served.level, asked=asked)
        served.learn(found, active=waiting)
        await near.exchange(amounts, waiting)
        return tenant

    def seconds(self, tenant: str) -> float:
        return sum(seconds for (_, who), seconds in self.had.items() if who == tenant)


async def _both(world: World, rounds: int) -> None:
    """Tenant a asks for embeddings and chats without end, b for chats alone."""
    for _ in range(rounds):
        await world.serve("embeddings", ["a"], cost=5000.0)
        await world.serve("chat", ["a", "b"], cost=50.0)
        world.now += 1.0


def test_a_tenant_with_a_flood_of_embeddings_gets_no_whole_share_of_the_chats_as_well() -> None:
    apart, together = World(neighbours=False), World(neighbours=True)
    asyncio.run(_both(apart, 100))
    asyncio.run(_both(together, 100))
    assert apart.seconds("a") == 75.0  # all embeddings, and half of the chats
    assert together.seconds("a") <= 55.0
    assert together.had["chat", "b"] >= 45.0


def test_a_tenant_owes_nothing_for_what_it_had_while_it_was_not_there() -> None:
    world = World(neighbours=True)

    async def story() -> None:
        for _ in range(100):
            await world.serve("embeddings", ["a"], cost=5000.0)
            await world.serve("chat", ["b"], cost=50.0)
            world.now += 1.0
        taken = [await world.serve("chat", ["a", "b"], cost=50.0) for _ in range(10)]
        assert 4 <= taken.count("a") <= 6

    asyncio.run(story())


def test_without_neighbours_nothing_is_written() -> None:
    world = World(neighbours=False)
    asyncio.run(world.serve("chat", ["a"], cost=1.0))
    assert list(world.shares._pools) == ["chat"]
