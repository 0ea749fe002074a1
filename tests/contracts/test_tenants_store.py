"""The store's contract for tenants: their places, plans and keys, and what their turns cost together."""

import asyncio
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from axon.domain.billing.cost import Amount, Cost, Rates
from axon.domain.billing.replica_use import ReplicaSum, ReplicaUse, UseKind
from axon.domain.billing.usage import Usage
from axon.domain.billing.usage_sum import UsageSum
from axon.domain.tenants.access import Access
from axon.domain.tenants.key import HOLDER, Scope
from axon.domain.tenants.tenant import Limits, Plan, Tenant, Tier
from axon.domain.turn import opened
from axon.errors import Conflict
from axon.ports.store import Store
from tests.contracts.backends import StoreBackend
from tests.contracts.builders import make_ended, make_job, make_key

EVERYTHING = Limits(
    requests_per_minute=60.5,
    tokens_per_minute=0.0,
    concurrent=8,
    queued=0,
    tokens_per_day=1_000_000,
    tokens_per_month=1 << 40,
    weight=2.5,
    highest_tier=Tier.PRIORITY,
    models=("small", "größer/🦀"),
    kv_share=0.5,
    reserved=0.25,
    pool="acme",
)
DAY_S = 86400.0


class TestTenants:
    async def test_a_tenant_comes_back_as_it_was_made(self, stores: StoreBackend, store: Store) -> None:
        tenant = Tenant(
            id="acme", name="Acme Inc.", plan="pro", limits=EVERYTHING, created_at=100.0, suspended_at=200.0
        )
        assert await store.tenants.add(tenant) == replace(tenant, place=0)
        assert await (await stores.connect()).tenants.get("acme") == replace(tenant, place=0)

    async def test_an_unknown_tenant_is_none(self, store: Store) -> None:
        assert await store.tenants.get("acme") is None
        assert await store.tenants.get("a\x00b") is None

    async def test_an_id_is_given_once(self, store: Store) -> None:
        first = await store.tenants.add(Tenant(id="acme", name="first"))
        with pytest.raises(Conflict):
            await store.tenants.add(Tenant(id="acme", name="second"))
        assert await store.tenants.all() == [first]

    async def test_places_count_from_0_and_one_that_is_free_is_given_again(self, store: Store) -> None:
        places = [(await store.tenants.add(Tenant(id=f"t{number}", created_at=number))).place for number in range(4)]
        assert places == [0, 1, 2, 3]
        assert await store.tenants.remove("t0", at=1.0)
        assert await store.tenants.remove("t2", at=1.0)
        assert [(await store.tenants.add(Tenant(id=f"n{number}"))).place for number in range(3)] == [0, 2, 4]

    async def test_who_are_made_at_once_get_places_of_their_own(self, stores: StoreBackend, store: Store) -> None:
        other = await stores.connect()
        made = await asyncio.gather(
            *((store, other)[number % 2].tenants.add(Tenant(id=f"t{number}")) for number in range(12))
        )
        assert sorted(each.place for each in made if each.place is not None) == list(range(12))

    async def test_tenants_are_listed_oldest_first(self, store: Store) -> None:
        for number, created_at in enumerate((30.0, 10.0, 20.0)):
            await store.tenants.add(Tenant(id=f"t{number}", created_at=created_at))
        assert [tenant.id for tenant in await store.tenants.all()] == ["t1", "t2", "t0"]

    async def test_a_change_sets_all_but_id_place_and_age(self, store: Store) -> None:
        old = await store.tenants.add(Tenant(id="acme", created_at=100.0))
        new = Tenant(id="acme", name="Acme", plan="pro", limits=EVERYTHING, suspended_at=5.0, place=9, created_at=1.0)
        assert await store.tenants.change(old, new)
        assert await store.tenants.get("acme") == replace(new, place=0, created_at=100.0)
        assert await store.tenants.change(new, old)
        assert await store.tenants.get("acme") == old

    async def test_of_two_who_change_the_same_the_second_is_told(self, store: Store) -> None:
        old = await store.tenants.add(Tenant(id="acme"))
        assert await store.tenants.change(old, replace(old, limits=Limits(weight=2.0)))
        assert not await store.tenants.change(old, replace(old, name="Acme"))
        assert await store.tenants.get("acme") == replace(old, limits=Limits(weight=2.0))

    async def test_the_id_of_one_that_was_removed_is_not_given_again(self, store: Store) -> None:
        await store.tenants.add(Tenant(id="acme"))
        assert await store.tenants.remove("acme", at=5.0)
        with pytest.raises(Conflict) as refused:
            await store.tenants.add(Tenant(id="acme"))
        assert refused.value.code == "tenant_removed"
        assert await store.tenants.get("acme") is None
        assert not await store.tenants.remove("acme", at=6.0)
        assert (await store.tenants.add(Tenant(id="acme2"))).place == 0

    async def test_what_is_not_there_is_not_changed_or_removed(self, store: Store) -> None:
        assert not await store.tenants.change(Tenant(id="acme"), Tenant(id="acme", name="Acme"))
        assert not await store.tenants.remove("acme", at=1.0)


class TestPlans:
    async def test_a_plan_is_made_once_and_then_changed(self, store: Store) -> None:
        old, new = Plan(name="pro", limits=EVERYTHING), Plan(name="pro", limits=Limits(weight=2.0))
        assert await store.plans.get("pro") is None
        assert not await store.plans.change(old, new)
        assert await store.plans.add(old)
        assert not await store.plans.add(new)
        assert await store.plans.get("pro") == old
        assert await store.plans.change(old, new)
        assert await store.plans.get("pro") == new

    async def test_of_two_who_change_the_same_the_second_is_told(self, store: Store) -> None:
        old, first = Plan(name="pro"), Plan(name="pro", limits=Limits(weight=2.0))
        await store.plans.add(old)
        assert await store.plans.change(old, first)
        assert not await store.plans.change(old, Plan(name="pro", limits=EVERYTHING))
        assert await store.plans.get("pro") == first

    async def test_plans_are_listed_by_name_and_can_go(self, store: Store) -> None:
        for name in ("pro", "free", "team"):
            await store.plans.add(Plan(name=name))
        assert await store.plans.remove("pro")
        assert not await store.plans.remove("pro")
        assert [plan.name for plan in await store.plans.all()] == ["free", "team"]


class TestAccess:
    async def test_a_key_comes_with_its_tenant_and_plan(self, store: Store) -> None:
        plan = Plan(name="pro", limits=Limits(weight=2.0))
        tenant = await store.tenants.add(Tenant(id="acme", plan="pro", limits=EVERYTHING, created_at=5.0))
        await store.plans.add(plan)
        key = make_key(scopes=frozenset({Scope.ADMIN}), expires_at=500.0)
        await store.keys.add(key)
        assert await store.keys.access(key.id) == Access(key=key, tenant=tenant, plan=plan)

    async def test_a_plan_that_is_not_there_is_none(self, store: Store) -> None:
        tenant = await store.tenants.add(Tenant(id="acme", plan="pro"))
        await store.plans.add(Plan(name="default"))
        await store.keys.add(make_key())
        assert await store.keys.access("k0000001") == Access(key=make_key(), tenant=tenant)

    async def test_a_key_whose_tenant_was_never_made_is_on_the_default_plan(self, store: Store) -> None:
        await store.keys.add(make_key())
        assert await store.keys.access("k0000001") == Access(key=make_key(), tenant=Tenant(id="acme"))
        await store.plans.add(Plan(name="default", limits=EVERYTHING))
        found = await store.keys.access("k0000001")
        assert found is not None
        assert found.plan == Plan(name="default", limits=EVERYTHING)

    async def test_an_unknown_key_opens_nothing(self, store: Store) -> None:
        assert await store.keys.access("nothing0") is None
        assert await store.keys.access("a\x00b") is None


class TestKeysOfATenant:
    async def test_scopes_come_back_whatever_they_are(self, store: Store) -> None:
        for number, scopes in enumerate((HOLDER, frozenset(Scope), frozenset[Scope]())):
            key = make_key(f"k{number}", scopes=scopes)
            await store.keys.add(key)
            assert await store.keys.find(key.id) == key

    async def test_a_tenants_keys_are_listed_without_the_others(self, store: Store) -> None:
        for number, tenant in enumerate(("acme", "bee", "acme")):
            await store.keys.add(make_key(f"k{number}", tenant=tenant, created_at=100.0 - number))
        assert [key.id for key in await store.keys.all(tenant="acme")] == ["k2", "k0"]
        assert await store.keys.all(tenant="none") == []

    async def test_the_last_use_is_the_latest_that_was_told(self, store: Store) -> None:
        for number in range(3):
            await store.keys.add(make_key(f"k{number}"))
        await store.keys.touch({"k0": 300.0, "k1": 300.0, "unknown": 300.0})
        await store.keys.touch({"k0": 200.0, "k1": 400.0})
        await store.keys.touch({})
        assert [key.last_used_at for key in await store.keys.all()] == [300.0, 400.0, None]

    async def test_after_a_rotation_the_old_key_is_good_for_a_while_and_the_new_one_for_its_own_time(
        self, store: Store
    ) -> None:
        await store.keys.add(make_key("old"))
        new = make_key("new", previous="old", created_at=200.0)
        assert await store.keys.rotate(new, until=260.0)
        assert await store.keys.find("old") == make_key("old", expires_at=260.0)
        assert await store.keys.find("new") == new

    async def test_a_rotation_never_makes_the_old_key_live_longer(self, store: Store) -> None:
        await store.keys.add(make_key("old", expires_at=210.0))
        assert await store.keys.rotate(make_key("new", previous="old"), until=260.0)
        assert await store.keys.find("old") == make_key("old", expires_at=210.0)

    async def test_a_key_that_is_not_there_is_not_rotated(self, store: Store) -> None:
        assert not await store.keys.rotate(make_key("new", previous="old"), until=260.0)
        assert await store.keys.all() == []

    async def test_a_rotation_to_a_taken_id_changes_nothing(self, store: Store) -> None:
        await store.keys.add(make_key("old"))
        await store.keys.add(make_key("other"))
        with pytest.raises(Conflict):
            await store.keys.rotate(make_key("other", previous="old"), until=260.0)
        assert await store.keys.find("old") == make_key("old")


class TestUsage:
    async def test_what_ended_in_a_time_is_summed_by_tenant_and_by_day(self, store: Store) -> None:
        days = 20_000 * DAY_S  # 2024-10-04
        for tenant in ("acme", "bee"):
            await store.keys.add(make_key(f"k-{tenant}", tenant=tenant))
        ends = [("acme", -0.001), ("acme", 0.0), ("acme", DAY_S - 0.001), ("acme", DAY_S), ("bee", 5.0)]
        for number, (tenant, at) in enumerate(ends):
            job = make_job(f"turn_{number}", tenant=tenant)
            await store.turns.apply([make_ended(job, at=days + at, num_tokens=number + 1)])
        await store.turns.apply([opened(make_job("running"))])

        def spent(tenant: str, day: str, num_turns: int, output_tokens: int) -> UsageSum:
            usage = Usage(prompt_tokens=3 * num_turns, cached_tokens=num_turns, output_tokens=output_tokens)
            return UsageSum(tenant=tenant, day=day, num_turns=num_turns, usage=usage)

        sums = partial(store.usage.sums, since=days, until=days + 2 * DAY_S)
        assert await sums() == [spent("acme", "", 3, 9), spent("bee", "", 1, 5)]
        by_day = [spent("acme", "2024-10-04", 2, 5), spent("acme", "2024-10-05", 1, 4)]
        assert await sums(tenant="acme", by_day=True) == by_day
        assert await sums(by_day=True) == [*by_day, spent("bee", "2024-10-04", 1, 5)]
        assert await store.usage.sums(since=0.0, until=days, by_day=True) == [spent("acme", "2024-10-03", 1, 1)]
        assert await store.usage.sums(since=0.0, until=1.0, tenant="bee") == []

    async def test_costs_are_summed_exactly_one_sum_for_each_currency(self, store: Store) -> None:
        await store.keys.add(make_key())
        jobs = [
            make_job("free"),
            make_job("a", price="p1", rates=Rates(prompt=1_000_000, output=7_000_000, currency="USD")),
            make_job("b", price="p2", rates=Rates(output=10**18, currency="USD")),
            make_job("c", price="p2", rates=Rates(output=10**18, currency="USD"), deployment="large"),
            make_job("d", price="p3", rates=Rates(cached=3_000_000, currency="EUR")),
        ]
        most = make_ended(jobs[2], num_tokens=10)
        turns = [
            make_ended(jobs[0]),
            make_ended(jobs[1]),
            most,
            make_ended(jobs[3], num_tokens=10),
            make_ended(jobs[4]),
        ]
        await store.turns.apply(turns)
        sums = partial(store.usage.sums, since=0.0, until=1_000.0)
        [spent] = await sums()
        assert (spent.num_turns, spent.usage.output_tokens) == (5, 26)
        assert spent.costs == (Amount.of(3, "EUR"), Amount.of(2 * 10**13 + 16, "USD"))
        assert [each.costs for each in await sums(by_day=True)] == [spent.costs]
        assert [(each.model, each.num_turns, each.costs) for each in await sums(by_model=True)] == [
            ("large", 1, (Amount.of(10**13, "USD"),)),
            ("small", 4, (Amount.of(3, "EUR"), Amount.of(10**13 + 16, "USD"))),
        ]

    async def test_replicas_time_is_raised_and_keeps_its_first_price_and_payer(self, store: Store) -> None:
        use = ReplicaUse(
            id="cold_start/small#-0/7",
            kind=UseKind.COLD_START,
            tenant="acme",
            deployment="small",
            version="small@v1",
            at=DAY_S,
            seconds=10.0,
            price_nanos=3_600 * 10**9,
            currency="USD",
        )
        await store.usage.add_replicas([use])
        await store.usage.add_replicas([replace(use, seconds=30.0, tenant="late", price_nanos=1, currency="EUR")])
        await store.usage.add_replicas([replace(use, seconds=20.0)])
        await store.usage.add_replicas([])
        [spent] = await store.usage.sums(since=0.0, until=2 * DAY_S)
        assert (spent.tenant, spent.num_turns, spent.costs) == ("acme", 0, ())
        dollars = (Amount.of(30 * 10**9, "USD"),)
        assert spent.replicas == ReplicaSum(cold_starts=1, cold_start_s=30.0, costs=dollars)
        assert await store.usage.sums(since=0.0, until=DAY_S) == []

    async def test_replicas_time_stands_beside_the_turns_of_the_same_day_and_model(self, store: Store) -> None:
        await store.keys.add(make_key())
        await store.turns.apply([make_ended(make_job(), at=DAY_S + 5.0)])

        def use(number: int, **changes: Any) -> ReplicaUse:
            whose = ReplicaUse(
                id=f"u{number}",
                kind=UseKind.DEDICATED,
                tenant="acme",
                deployment="small",
                version="v",
                at=DAY_S,
                seconds=60.0,
            )
            return replace(whose, **changes)

        priced = {"price_nanos": 10**9, "currency": "EUR"}
        uses = [use(1), use(2, at=2 * DAY_S, **priced), use(3, deployment="large", tenant="bee", **priced)]
        await store.usage.add_replicas(uses)
        sums = partial(store.usage.sums, since=0.0, until=3 * DAY_S)
        by_day = [(each.of, each.num_turns, each.replicas.dedicated_s) for each in await sums(by_day=True)]
        assert by_day == [
            (("acme", "1970-01-02", ""), 1, 60.0),
            (("acme", "1970-01-03", ""), 0, 60.0),
            (("bee", "1970-01-02", ""), 0, 60.0),
        ]
        by_model = [(each.of, each.num_turns, each.replicas.dedicated_s) for each in await sums(by_model=True)]
        assert by_model == [(("acme", "", "small"), 1, 120.0), (("bee", "", "large"), 0, 60.0)]
        [own] = await sums(tenant="acme")
        assert (own.num_turns, own.replicas.costs) == (1, (Amount.of(16_666_667, "EUR"),))

    async def test_a_sum_may_be_more_than_64_bits_hold_in_nanos(self, store: Store) -> None:
        await store.keys.add(make_key())
        rates = Rates(output=10**18, currency="USD")
        ends = [make_ended(make_job(f"turn_{number}", price="p", rates=rates)) for number in range(3)]
        amount = Amount.of(2**63 - 1, "USD")
        await store.turns.apply([replace(turn, cost=Cost(price="p", amount=amount)) for turn in ends])
        [spent] = await store.usage.sums(since=0.0, until=1_000.0)
        assert spent.costs == (Amount.of(3 * (2**63 - 1), "USD"),)

    async def test_a_turn_that_an_earlier_release_ended_costs_what_its_job_says(self, store: Store) -> None:
        await store.keys.add(make_key())
        job = make_job(price="p", rates=Rates(output=5_000_000, currency="USD"))
        await store.turns.apply([replace(make_ended(job), cost=None)])
        [spent] = await store.usage.sums(since=0.0, until=1_000.0)
        assert spent.costs == (Amount.of(10, "USD"),)

    async def test_a_purged_turn_counts_as_it_did(self, store: Store) -> None:
        await store.keys.add(make_key())
        turn = make_ended(make_job(price="p", rates=Rates(output=5_000_000, currency="USD")))
        await store.turns.apply([turn])
        before = await store.usage.sums(since=0.0, until=1_000.0)
        assert before[0].num_turns == 1
        await store.turns.purge(ended_before=1_000.0)
        assert await store.usage.sums(since=0.0, until=1_000.0) == before
        purged = await store.turns.get(turn.id)
        assert purged is not None
        assert purged.cost == turn.cost == Cost(price="p", amount=Amount.of(10, "USD"))
