"""Administration of the registry: what is refused and why, and that no two changes undo each other."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from axon.adapters.store.sqlite import SqliteStore
from axon.domain.registry.deployment import Deployment, MemberState
from axon.domain.registry.model import Capability
from axon.domain.registry.price import Price
from axon.domain.registry.snapshot import Snapshot
from axon.domain.registry.version import Advice, EngineSettings, Version
from axon.errors import AxonError, Conflict, InvalidInput, NotFound
from axon.registry.catalog import Catalog
from axon.registry.writer import RegistryWriter
from axon.runtime.clock import FakeClock
from tests.domain.registry.builders import version
from tests.registry.catalog_world import ACTOR, DEPLOYMENT, MODEL, World, nobody, refused


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    store, clock, pinned = SqliteStore(tmp_path / "axon.db"), FakeClock(), dict[str, int]()
    await store.open()

    async def count(version_id: str) -> int:
        return pinned.get(version_id, 0)

    unfinished = dict[str, int]()

    async def count_unfinished(deployment: str) -> int:
        return unfinished.get(deployment, 0)

    writer = RegistryWriter(store.registry, clock)
    catalog = Catalog(store.registry, writer, clock, pinned=count, unfinished=count_unfinished)
    yield World(store, clock, pinned, unfinished, catalog)
    await store.aclose()


async def test_a_model_is_added_with_its_first_version_and_deployment_at_once(world: World) -> None:
    await world.add_small()
    found = await world.catalog.snapshot()
    deployment = found.deployments["small"]
    assert (found.models["small"].created, found.versions["small@v1"].created) == (world.clock.now(), world.clock.now())
    assert (deployment.stable, [member.letter for member in deployment.members]) == ("small@v1", [""])
    assert deployment.members[0].state is MemberState.REGISTERED
    trail = await world.catalog.changes(after=0, limit=10)
    assert [(each.actor, each.kind, each.name) for each in trail] == [
        (ACTOR, "model", "small"),
        (ACTOR, "version", "small@v1"),
        (ACTOR, "deployment", "small"),
        (ACTOR, "version", "small@v2"),
    ]


async def test_a_model_whose_deployment_cannot_be_made_is_not_added(world: World) -> None:
    await world.add_small()
    await world.catalog.set_alias("best", "small", actor=ACTOR)
    adding = world.catalog.add_model(replace(MODEL, name="best"), version(model="best"), deploys=True, actor=ACTOR)
    await refused(adding, Conflict, "name_taken", "An alias has the name 'best'")
    assert "best" not in (await world.catalog.snapshot()).models


class TestNames:
    @pytest.mark.parametrize("name", ["", "a@b", "a:b", "a/b", "a#b", "-a", "a b", "x" * 65, "größe"])
    async def test_a_name_that_lanes_or_versions_could_not_carry_is_refused(self, world: World, name: str) -> None:
        await world.add_small()
        catalog = world.catalog
        for call in (
            catalog.add_model(replace(MODEL, name=name), actor=ACTOR),
            catalog.add_version(replace(version(), label=name), actor=ACTOR),
            catalog.create_deployment(replace(DEPLOYMENT, name=name), "small@v1", actor=ACTOR),
            catalog.set_alias(name, "small", actor=ACTOR),
        ):
            await refused(call, InvalidInput, "invalid_value", "must have 1 to 64 letters")

    async def test_a_name_is_given_once(self, world: World) -> None:
        await world.add_small()
        catalog = world.catalog
        await refused(catalog.add_model(MODEL, actor=ACTOR), Conflict, "model_exists")
        await refused(catalog.add_version(version("v1"), actor=ACTOR), Conflict, "version_exists")
        making = catalog.create_deployment(DEPLOYMENT, "small@v1", actor=ACTOR)
        await refused(making, Conflict, "deployment_exists")

    async def test_an_alias_and_a_deployment_never_share_a_name(self, world: World) -> None:
        await world.add_small()
        await refused(world.catalog.set_alias("small", "small", actor=ACTOR), Conflict, "name_taken", "A deployment")
        await world.catalog.set_alias("best", "small", actor=ACTOR)
        making = world.catalog.create_deployment(replace(DEPLOYMENT, name="best"), "small@v1", actor=ACTOR)
        await refused(making, Conflict, "name_taken", "An alias")

    async def test_what_is_not_there_is_told_by_its_name(self, world: World) -> None:
        catalog = world.catalog
        for call, code in (
            (catalog.change_model("small", lambda old: old, actor=ACTOR), "model_not_found"),
            (catalog.remove_model("small", actor=ACTOR), "model_not_found"),
            (catalog.add_version(version(), actor=ACTOR), "model_not_found"),
            (catalog.remove_version("small@v1", actor=ACTOR), "version_not_found"),
            (catalog.create_deployment(DEPLOYMENT, "small@v1", actor=ACTOR), "model_not_found"),
            (catalog.change_deployment("small", lambda old: old, actor=ACTOR), "deployment_not_found"),
            (catalog.remove_deployment("small", actor=ACTOR), "deployment_not_found"),
            (catalog.set_alias("best", "small", actor=ACTOR), "deployment_not_found"),
            (catalog.set_alias("best", "small", revision=3, actor=ACTOR), "alias_not_found"),
            (catalog.remove_alias("best", actor=ACTOR), "alias_not_found"),
            (catalog.add_price(Price(id="", model="small", since=1.0), actor=ACTOR), "model_not_found"),
        ):
            await refused(call, NotFound, code, "There is no ")


class TestRevisions:
    async def test_a_change_made_from_an_older_revision_is_told_and_changes_nothing(self, world: World) -> None:
        await world.add_small()
        old = (await world.catalog.snapshot()).models["small"]
        new = await world.catalog.change_model(
            "small", lambda model: replace(model, licence="mit"), revision=old.revision, actor=ACTOR
        )
        changing = world.catalog.change_model(
            "small", lambda model: replace(model, licence="gpl"), revision=old.revision, actor=ACTOR
        )
        await refused(changing, Conflict, "revision_mismatch", f"its revision is {new.revision}")
        removing = world.catalog.remove_deployment("small", revision=1, actor=ACTOR)
        await refused(removing, Conflict, "revision_mismatch")
        found = await world.catalog.snapshot()
        assert found.models["small"] == new

    async def test_a_change_that_changes_nothing_has_no_number(self, world: World) -> None:
        await world.add_small()
        before = await world.catalog.snapshot()
        assert await world.catalog.change_model("small", lambda old: old, actor=ACTOR) == before.models["small"]
        assert (await world.catalog.snapshot()).revision == before.revision

    async def test_changes_of_different_fields_at_once_are_all_there(self, world: World) -> None:
        await world.add_small()

        def raise_by_one(old: Deployment) -> Deployment:
            return replace(old, max_replicas=old.max_replicas + 1)

        await asyncio.gather(
            *(world.catalog.change_deployment("small", raise_by_one, actor=f"writer {number}") for number in range(4))
        )
        assert (await world.catalog.snapshot()).deployments["small"].max_replicas == 5

    async def test_a_version_is_deployed_or_removed_never_both(self, world: World) -> None:
        for number in range(5):
            await world.catalog.add_model(replace(MODEL, name=f"m{number}"), actor=ACTOR)
            await world.catalog.add_version(version(model=f"m{number}"), actor=ACTOR)
            deployment = replace(DEPLOYMENT, name=f"m{number}", model=f"m{number}")
            both = await asyncio.gather(
                world.catalog.create_deployment(deployment, f"m{number}@v1", actor=ACTOR),
                world.catalog.remove_version(f"m{number}@v1", actor=ACTOR),
                return_exceptions=True,
            )
            assert sum(isinstance(each, AxonError) for each in both) == 1
            found = await world.catalog.snapshot()
            assert (f"m{number}" in found.deployments) is (f"m{number}@v1" in found.versions)


class TestVersions:
    async def test_a_version_in_use_is_not_removed(self, world: World) -> None:
        await world.add_small()
        removing = world.catalog.remove_version("small@v1", actor=ACTOR)
        await refused(removing, Conflict, "version_in_use", "is deployed: small")
        drafted = replace(version("v3"), settings=EngineSettings(draft="small@v2"))
        await world.catalog.add_version(drafted, actor=ACTOR)
        removing = world.catalog.remove_version("small@v2", actor=ACTOR)
        await refused(removing, Conflict, "version_in_use", "drafts for others: small@v3")

    async def test_a_version_that_anyone_is_pinned_to_is_not_removed(self, world: World) -> None:
        await world.add_small()
        world.pinned["small@v2"] = 2
        removing = world.catalog.remove_version("small@v2", actor=ACTOR)
        await refused(removing, Conflict, "version_pinned", "2 sessions are pinned to the version 'small@v2'")
        world.pinned["small@v2"] = 0
        await world.catalog.remove_version("small@v2", actor=ACTOR)
        assert "small@v2" not in (await world.catalog.snapshot()).versions

    async def test_a_removed_versions_id_is_given_again_for_the_same_files_only(self, world: World) -> None:
        await world.add_small()
        await world.catalog.remove_version("small@v2", actor=ACTOR)
        other = replace(version("v2"), digest="other")
        await refused(world.catalog.add_version(other, actor=ACTOR), Conflict, "version_removed", "another label")
        assert (await world.catalog.add_version(version("v2"), actor=ACTOR)).digest == "digest-v2"

    async def test_a_version_that_is_removed_in_the_same_moment_is_not_added_again_with_other_files(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await world.add_small()
        snapshot, waiting = world.store.registry.snapshot, ["small@v2"]
        registry = world.store.registry
        elsewhere = Catalog(registry, RegistryWriter(registry, world.clock), world.clock, pinned=nobody)

        async def outrun() -> Snapshot:
            if waiting:
                await elsewhere.remove_version(waiting.pop(), actor="somebody else")
            return await snapshot()

        monkeypatch.setattr(world.store.registry, "snapshot", outrun)
        other = replace(version("v2"), digest="other")
        await refused(world.catalog.add_version(other, actor=ACTOR), Conflict, "version_removed", "another label")

    async def test_the_kernel_is_recorded_once(self, world: World) -> None:
        await world.add_small()
        first = await world.catalog.record_kernel("small@v1", "int8/neon", actor="control")
        assert await world.catalog.record_kernel("small@v1", "int8/neon", actor="control") == first
        recording = world.catalog.record_kernel("small@v1", "int8/avx2", actor="control")
        await refused(recording, Conflict, "kernel_differs", "'int8/neon', not by 'int8/avx2'")

    @pytest.mark.parametrize(
        ("changes", "param"),
        [
            ({"source": ""}, "source"),
            ({"source": "a\nb"}, "source"),
            ({"digest": ""}, "digest"),
            ({"text": "x" * 2000}, "text"),
            ({"max_model_len": 0}, "max_model_len"),
            ({"settings": EngineSettings(max_model_len=-1)}, "settings.max_model_len"),
            ({"advice": Advice(temperature=3.0)}, "advice.temperature"),
            ({"advice": Advice(top_p=float("nan"))}, "advice.top_p"),
            ({"fingerprints": ("x",) * 33}, "fingerprints"),
        ],
    )
    async def test_a_version_that_could_not_be_served_is_refused(
        self, world: World, changes: dict[str, Any], param: str
    ) -> None:
        await world.add_small()
        with pytest.raises(InvalidInput) as error:
            await world.catalog.add_version(replace(version("v3"), **changes), actor=ACTOR)
        assert error.value.param == param

    async def test_a_draft_must_be_registered_and_a_fingerprint_is_one_versions(self, world: World) -> None:
        await world.add_small()
        drafted = replace(version("v3"), settings=EngineSettings(draft="tiny@v1"))
        await refused(world.catalog.add_version(drafted, actor=ACTOR), NotFound, "version_not_found", "tiny@v1")
        marked: Version = replace(version("v3"), fingerprints=("mark",))
        await world.catalog.add_version(marked, actor=ACTOR)
        adding = world.catalog.add_version(replace(marked, label="v4"), actor=ACTOR)
        await refused(adding, Conflict, "fingerprint_in_use", "small@v3")


class TestDeployments:
    @pytest.mark.parametrize(
        ("changes", "param"),
        [
            ({"min_replicas": -1}, "min_replicas"),
            ({"min_replicas": 3, "max_replicas": 2}, "max_replicas"),
            ({"max_replicas": 0, "min_replicas": 0}, "max_replicas"),
            ({"max_replicas": 1001}, "max_replicas"),
            ({"memory_bytes": -1}, "memory_bytes"),
            ({"devices": -1}, "devices"),
            ({"idle_s": -0.5}, "idle_s"),
            ({"patience_s": float("nan")}, "patience_s"),
            ({"cold_patience_s": -1.0}, "cold_patience_s"),
            ({"pool": "Gold!"}, "pool"),
            ({"fallbacks": ("small",)}, "fallbacks"),
            ({"fallbacks": ("other", "other")}, "fallbacks"),
        ],
    )
    async def test_settings_that_cannot_work_are_refused_by_name(
        self, world: World, changes: dict[str, Any], param: str
    ) -> None:
        await world.add_small()
        await world.catalog.create_deployment(replace(DEPLOYMENT, name="other"), "small@v2", actor=ACTOR)
        with pytest.raises(InvalidInput) as error:
            await world.catalog.change_deployment("small", lambda old: replace(old, **changes), actor=ACTOR)
        assert error.value.param == param

    async def test_a_deployment_runs_versions_of_its_own_model_only(self, world: World) -> None:
        await world.add_small()
        await world.catalog.add_model(replace(MODEL, name="large"), actor=ACTOR)
        making = world.catalog.create_deployment(
            replace(DEPLOYMENT, name="large", model="large"), "small@v1", actor=ACTOR
        )
        await refused(making, InvalidInput, "invalid_value", "'small@v1' is no version of 'large'")

    async def test_a_deployment_that_something_leads_to_is_not_removed(self, world: World) -> None:
        await world.add_small()
        await world.catalog.set_alias("best", "small", actor=ACTOR)
        removing = world.catalog.remove_deployment("small", actor=ACTOR)
        await refused(removing, Conflict, "deployment_in_use", "Aliases stand for the deployment 'small': best")
        await world.catalog.remove_alias("best", actor=ACTOR)
        await world.catalog.create_deployment(
            replace(DEPLOYMENT, name="other", fallbacks=("small",)), "small@v2", actor=ACTOR
        )
        removing = world.catalog.remove_deployment("small", actor=ACTOR)
        await refused(removing, Conflict, "deployment_in_use", "fall back on the deployment 'small': other")
        await world.catalog.remove_deployment("other", actor=ACTOR)
        world.pinned["small@v1"] = 1
        await refused(world.catalog.remove_deployment("small", actor=ACTOR), Conflict, "version_pinned", "1 session is")
        world.pinned.clear()
        world.unfinished["small"] = 2  # of turns that are their own session, which nothing is pinned by
        removing = world.catalog.remove_deployment("small", actor=ACTOR)
        await refused(removing, Conflict, "turns_unfinished", "2 turns have not ended in the deployment 'small'")
        world.unfinished.clear()
        await world.catalog.remove_deployment("small", actor=ACTOR)
        assert (await world.catalog.snapshot()).deployments == {}


async def test_an_alias_is_switched_and_keeps_its_age(world: World) -> None:
    await world.add_small()
    await world.catalog.create_deployment(replace(DEPLOYMENT, name="other"), "small@v2", actor=ACTOR)
    made = await world.catalog.set_alias("best", "small", actor=ACTOR)
    world.clock.advance(60)
    switched = await world.catalog.set_alias("best", "other", revision=made.revision, actor=ACTOR)
    assert (switched.deployment, switched.before, switched.created) == ("other", ("small",), made.created)
    switching = world.catalog.set_alias("best", "small", revision=made.revision, actor=ACTOR)
    await refused(switching, Conflict, "revision_mismatch")


class TestModels:
    async def test_a_model_goes_with_its_prices_when_it_has_no_versions(self, world: World) -> None:
        await world.add_small()
        await world.catalog.add_price(Price(id="", model="small", prompt=1.0, since=5.0), actor=ACTOR)
        await refused(world.catalog.remove_model("small", actor=ACTOR), Conflict, "model_in_use", "is deployed: small")
        await world.catalog.remove_deployment("small", actor=ACTOR)
        removing = world.catalog.remove_model("small", actor=ACTOR)
        await refused(removing, Conflict, "model_in_use", "has versions: small@v1, small@v2")
        for label in ("v1", "v2"):
            await world.catalog.remove_version(f"small@{label}", actor=ACTOR)
        await world.catalog.remove_model("small", actor=ACTOR)
        left = await world.catalog.snapshot()
        assert (left.models, left.prices) == ({}, ())

    async def test_a_model_can_do_something(self, world: World) -> None:
        await refused(
            world.catalog.add_model(replace(MODEL, capabilities=()), actor=ACTOR), InvalidInput, "invalid_value"
        )
        made = await world.catalog.add_model(replace(MODEL, capabilities=(Capability.EMBEDDINGS,)), actor=ACTOR)
        assert made.capabilities == (Capability.EMBEDDINGS,)


class TestPrices:
    async def test_prices_follow_each_other_and_none_is_changed(self, world: World) -> None:
        await world.add_small()
        price = Price(id="", model="small", version="small@v1", prompt=0.15, output=0.6, since=100.0)
        first = await world.catalog.add_price(price, actor=ACTOR)
        assert first.id.startswith("price_")
        await refused(world.catalog.add_price(price, actor=ACTOR), Conflict, "price_exists")
        later = await world.catalog.add_price(replace(price, since=200.0), actor=ACTOR)
        assert (await world.catalog.snapshot()).prices == (first, later)

    @pytest.mark.parametrize(
        ("changes", "param"),
        [
            ({"prompt": -1.0}, "prompt"),
            ({"output": 1e10}, "output"),
            ({"currency": "usd"}, "currency"),
            ({"since": -1.0}, "since"),
        ],
    )
    async def test_a_price_that_nobody_could_mean_is_refused(
        self, world: World, changes: dict[str, Any], param: str
    ) -> None:
        await world.add_small()
        price = replace(Price(id="", model="small", since=1.0), **changes)
        with pytest.raises(InvalidInput) as error:
            await world.catalog.add_price(price, actor=ACTOR)
        assert error.value.param == param


async def test_of_many_changes_at_once_none_is_refused_for_the_others(world: World) -> None:
    await world.add_small()
    names = [f"alias-{number}" for number in range(40)]
    await asyncio.gather(*[world.catalog.add_alias(name, "small", actor=ACTOR) for name in names])
    assert set((await world.catalog.snapshot()).aliases) == set(names)


@pytest.mark.parametrize("more", [(("x" * 2000, "1"),), (("threads", "1" * 2000),), (("threads", "1\n2"),)])
async def test_settings_of_the_engine_are_short_printable_texts(
    world: World, more: tuple[tuple[str, str], ...]
) -> None:
    await world.add_small()
    wrong = replace(version("v3"), settings=EngineSettings(more=more))
    await refused(world.catalog.add_version(wrong, actor=ACTOR), InvalidInput, "invalid_value", "settings.more")
