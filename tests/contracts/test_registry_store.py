"""The store's contract for the registry: nothing is overwritten unseen, and every change has its number."""

import asyncio
import json
from dataclasses import replace
from typing import TypeVar

import pytest

from axon.domain.registry.deployment import Alias, FreedLetter
from axon.domain.registry.model import Capability, Model
from axon.domain.registry.price import Price
from axon.domain.registry.record import Record
from axon.domain.registry.snapshot import Snapshot
from axon.domain.registry.version import Advice, EngineSettings, Version
from axon.ports.store import Store
from tests.contracts.backends import StoreBackend
from tests.domain.registry.builders import deployment, rollout, version

MODEL = Model(name="small", capabilities=(Capability.CHAT, Capability.TOOLS), max_model_len=8192, created=1.5)
ALIAS = Alias(name="best", deployment="small", created=2.0)

R = TypeVar("R", bound=Record)


async def added(store: Store, record: R) -> R:
    """The record as it is in the store."""
    revision = await store.registry.write(None, record, actor="test", at=5.0)
    assert revision is not None
    return replace(record, revision=revision)


class TestRecords:
    async def test_a_new_registry_is_empty(self, store: Store) -> None:
        assert await store.registry.snapshot() == Snapshot()
        assert await store.registry.revision() == 0
        assert await store.registry.changes(after=0, limit=10) == []

    async def test_every_kind_comes_back_as_it_was_written(self, stores: StoreBackend, store: Store) -> None:
        full = Version(
            model="small",
            label="v1",
            source="hf://org/größer@main 🦀",
            source_revision="abc",
            digest="d" * 64,
            text="mark",
            max_model_len=4096,
            settings=EngineSettings(kind="echo", dtype="float32", max_model_len=4096, draft="tiny@v1"),
            advice=Advice(temperature=0.7, top_p=0.9, top_k=40, repetition_penalty=1.1),
            reasons=True,
            fingerprints=("aaaa", "bbbb"),
            kernel="int8/neon",
            created=3.25,
        )
        deployed = replace(
            deployment(going=rollout()),
            freed=(FreedLetter(letter="c", at=9.0),),
            pool="gold",
            idle_s=0.5,
            fallbacks=("other",),
            num_lanes=8,
        )
        price = Price(id="price_1", model="small", prompt=0.15, output=0.6, since=100.0)
        model, made = await added(store, MODEL), await added(store, full)
        deployed_now, alias = await added(store, deployed), await added(store, ALIAS)
        priced = await added(store, price)
        assert await (await stores.connect()).registry.snapshot() == Snapshot(
            revision=5,
            models={"small": model},
            versions={"small@v1": made},
            deployments={"small": deployed_now},
            aliases={"best": alias},
            prices=(priced,),
        )

    async def test_prices_come_in_the_order_of_their_times(self, store: Store) -> None:
        for number, since in enumerate((30.0, 10.0, 20.0)):
            await added(store, Price(id=f"price_{number}", model="small", since=since))
        assert [price.since for price in (await store.registry.snapshot()).prices] == [10.0, 20.0, 30.0]

    async def test_a_name_is_unique_in_its_kind_only(self, store: Store) -> None:
        await added(store, MODEL)
        assert await store.registry.write(None, replace(MODEL, licence="mit"), actor="test", at=6.0) is None
        assert await store.registry.write(None, replace(ALIAS, name="small"), actor="test", at=6.0) == 2


class TestChanges:
    async def test_a_change_compares_the_records_revision_and_gives_it_the_next(self, store: Store) -> None:
        old = await added(store, MODEL)
        await added(store, ALIAS)
        assert await store.registry.write(old, replace(old, licence="mit"), actor="test", at=6.0) == 3
        assert await store.registry.write(old, replace(old, licence="gpl"), actor="test", at=7.0) is None
        assert await store.registry.write(old, None, actor="test", at=7.0) is None
        found = await store.registry.snapshot()
        assert (found.revision, found.models["small"]) == (3, replace(old, licence="mit", revision=3))

    async def test_what_is_not_there_is_not_changed_or_removed(self, store: Store) -> None:
        assert await store.registry.write(MODEL, replace(MODEL, licence="mit"), actor="test", at=6.0) is None
        assert await store.registry.write(MODEL, None, actor="test", at=6.0) is None
        assert await store.registry.revision() == 0

    async def test_a_name_that_is_added_again_has_a_revision_it_never_had(self, store: Store) -> None:
        old = await added(store, MODEL)
        assert await store.registry.write(old, None, actor="test", at=6.0) == 2
        again = await added(store, MODEL)
        assert again.revision == 3
        assert await store.registry.write(old, replace(old, licence="mit"), actor="test", at=7.0) is None

    async def test_a_change_over_another_revision_of_the_registry_is_refused(self, store: Store) -> None:
        old = await added(store, MODEL)
        await added(store, ALIAS)
        new = replace(old, licence="mit")
        assert await store.registry.write(old, new, actor="test", at=6.0, over=1) is None
        assert await store.registry.write(old, new, actor="test", at=6.0, over=2) == 3

    async def test_several_changes_are_made_together_or_not_at_all(self, store: Store) -> None:
        edits: list[tuple[Record | None, Record | None]] = [(None, MODEL), (None, version()), (None, deployment())]
        assert await store.registry.write_all(edits, actor="test", at=5.0) == 3
        found = await store.registry.snapshot()
        assert (found.models["small"].revision, found.versions["small@v1"].revision) == (1, 2)
        refused: list[tuple[Record | None, Record | None]] = [(None, ALIAS), (None, version())]
        assert await store.registry.write_all(refused, actor="test", at=6.0) is None
        assert await store.registry.snapshot() == found
        assert len(await store.registry.changes(after=0, limit=10)) == 3

    async def test_of_many_who_change_the_same_exactly_one_wins(self, stores: StoreBackend, store: Store) -> None:
        old, other = await added(store, MODEL), await stores.connect()
        told = await asyncio.gather(
            *(
                (store, other)[number % 2].registry.write(
                    old, replace(old, licence=f"writer {number}"), actor=f"writer {number}", at=6.0
                )
                for number in range(10)
            )
        )
        assert sorted(told, key=lambda each: each or 0) == [None] * 9 + [2]
        winner = f"writer {told.index(2)}"
        assert (await store.registry.snapshot()).models["small"].licence == winner
        assert [each.actor for each in await store.registry.changes(after=1, limit=10)] == [winner]

    async def test_of_many_who_add_the_same_exactly_one_wins(self, stores: StoreBackend, store: Store) -> None:
        other = await stores.connect()
        told = await asyncio.gather(
            *((store, other)[number % 2].registry.write(None, MODEL, actor="test", at=6.0) for number in range(10))
        )
        assert sorted(told, key=lambda each: each or 0) == [None] * 9 + [1]

    async def test_changes_made_at_once_are_numbered_without_gaps(self, stores: StoreBackend, store: Store) -> None:
        other = await stores.connect()
        names = [f"a{number % 8}" for number in range(12)]  # four of them are there already
        told = await asyncio.gather(
            *(
                (store, other)[number % 2].registry.write(None, replace(ALIAS, name=name), actor="test", at=6.0)
                for number, name in enumerate(names)
            )
        )
        assert sorted(each for each in told if each is not None) == list(range(1, 9))
        assert [each.number for each in await store.registry.changes(after=0, limit=99)] == list(range(1, 9))
        assert await other.registry.revision() == 8

    async def test_what_is_read_while_others_write_is_of_one_revision(self, stores: StoreBackend, store: Store) -> None:
        """Two records are always changed together, so every snapshot has both at the same step."""
        other = await stores.connect()
        await store.registry.write_all([(None, MODEL), (None, ALIAS)], actor="test", at=5.0)

        async def write() -> None:
            for step in range(8):
                now = await store.registry.snapshot()
                old, alias = now.models["small"], now.aliases["best"]
                edits: list[tuple[Record | None, Record | None]] = [
                    (old, replace(old, licence=str(step))),
                    (alias, replace(alias, deployment=str(step))),
                ]
                assert await store.registry.write_all(edits, actor="test", at=6.0)

        async def read() -> None:
            for _ in range(20):
                seen = await other.registry.snapshot()
                steps = {seen.models["small"].revision, seen.aliases["best"].revision - 1, seen.revision - 1}
                assert len(steps) == 1

        await asyncio.gather(write(), read())


class TestAuditTrail:
    async def test_a_change_tells_who_made_it_when_and_what_it_was(self, store: Store) -> None:
        old = await added(store, MODEL)
        await store.registry.write(old, replace(old, licence="mit"), actor="key_1", at=6.0)
        new = (await store.registry.snapshot()).models["small"]
        await store.registry.write(new, None, actor="cli", at=7.0)
        made, changed, removed = await store.registry.changes(after=0, limit=10)
        assert await store.registry.removals(kind=removed.kind, name=removed.name) == [removed]
        assert await store.registry.removals(kind=removed.kind, name="another") == []
        facts = [
            (each.number, each.at, each.actor, each.kind, each.name, each.action) for each in (made, changed, removed)
        ]
        assert facts == [
            (1, 5.0, "test", "model", "small", "add"),
            (2, 6.0, "key_1", "model", "small", "change"),
            (3, 7.0, "cli", "model", "small", "remove"),
        ]
        assert (made.before, json.loads(made.after)["licence"]) == ("", "")
        assert (changed.before, json.loads(changed.after)["licence"]) == (made.after, "mit")
        assert (removed.before, removed.after) == (changed.after, "")

    @pytest.mark.parametrize(("after", "limit", "numbers"), [(0, 2, [1, 2]), (2, 2, [3, 4]), (4, 9, [5]), (9, 9, [])])
    async def test_the_trail_is_read_in_pages(self, store: Store, after: int, limit: int, numbers: list[int]) -> None:
        for number in range(5):
            await added(store, replace(ALIAS, name=f"a{number}"))
        assert [each.number for each in await store.registry.changes(after=after, limit=limit)] == numbers

    async def test_large_changes_come_in_shorter_pages_and_all_of_them_come(self, store: Store) -> None:
        for number in range(5):
            await added(store, replace(MODEL, name=f"m{number}", licence="x" * 1_500_000))
        numbers, after = [], 0
        while page := await store.registry.changes(after=after, limit=100):
            assert sum(len(each.after) for each in page) < 5_000_000
            numbers += [each.number for each in page]
            after = numbers[-1]
        assert numbers == [1, 2, 3, 4, 5]

    async def test_the_changes_of_one_record_are_read_alone(self, store: Store) -> None:
        for name in ("small", "other", "small2"):
            await added(store, replace(MODEL, name=name))
        found = (await store.registry.snapshot()).models["small"]
        await store.registry.write(found, None, actor="test", at=7.0)
        trail = await store.registry.changes(after=0, limit=9, kind="model", name="small")
        assert [(each.number, each.action) for each in trail] == [(1, "add"), (4, "remove")]
        assert await store.registry.changes(after=0, limit=9, kind="alias", name="small") == []
