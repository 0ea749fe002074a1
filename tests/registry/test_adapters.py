"""Administration of adapters: added, given other files, refused, removed."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from axon.adapters.store.sqlite import SqliteStore
from axon.domain.registry.adapter import Adapter, AdapterFiles
from axon.errors import Conflict, InvalidInput, NotFound
from axon.registry.catalog import Catalog
from axon.registry.writer import RegistryWriter
from axon.runtime.clock import FakeClock
from tests.registry.catalog_world import ACTOR, MODEL, World, nobody, refused

FILES = AdapterFiles(digest="1" * 64, source="/adapters/sql")
SQL = Adapter(model="small", label="sql", files=(FILES,), created=0.0)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    store, clock = SqliteStore(tmp_path / "axon.db"), FakeClock()
    await store.open()
    catalog = Catalog(store.registry, RegistryWriter(store.registry, clock), clock, pinned=nobody)
    yield World(store, clock, {}, {}, catalog)
    await store.aclose()


async def test_an_adapter_is_added_given_other_files_and_removed(world: World) -> None:
    made = await world.catalog.set_adapter(SQL, actor=ACTOR)
    assert (made.id, made.created) == ("small:sql", world.clock.now())
    same = await world.catalog.set_adapter(SQL, actor=ACTOR)
    assert same.revision == made.revision, "the same files again change nothing"
    newer = replace(SQL, files=(AdapterFiles(digest="2" * 64, source="/adapters/sql2"),))
    changed = await world.catalog.set_adapter(newer, actor=ACTOR)
    assert [each.digest[0] for each in changed.files] == ["2", "1"]
    assert (await world.catalog.snapshot()).adapters == {"small:sql": changed}
    await refused(
        world.catalog.remove_adapter("small:sql", revision=1, actor=ACTOR), Conflict, "revision_mismatch", "revision"
    )
    await world.catalog.remove_adapter("small:sql", actor=ACTOR)
    assert not (await world.catalog.snapshot()).adapters
    await refused(world.catalog.remove_adapter("small:sql", actor=ACTOR), NotFound, "adapter_not_found", "no adapter")
    trail = await world.catalog.changes(after=0, limit=10)
    assert [(each.kind, each.name, each.action) for each in trail] == [
        ("adapter", "small:sql", "add"),
        ("adapter", "small:sql", "change"),
        ("adapter", "small:sql", "remove"),
    ]


async def test_one_tenants_adapter_is_not_given_to_another(world: World) -> None:
    await world.catalog.set_adapter(replace(SQL, tenant="acme"), actor=ACTOR)
    await refused(
        world.catalog.set_adapter(replace(SQL, tenant="other"), actor=ACTOR), Conflict, "adapter_exists", "'acme'"
    )
    await refused(world.catalog.set_adapter(SQL, actor=ACTOR), Conflict, "adapter_exists", "'acme'")


@pytest.mark.parametrize(
    "wrong",
    [
        {"label": "a:b"},
        {"label": "a@b"},
        {"label": ""},
        {"label": "latest"},
        {"model": "a:b"},
        {"model": ""},
        {"tenant": "a b"},
        {"files": (AdapterFiles(digest="", source="/x"),)},
        {"files": (AdapterFiles(digest="1", source="\n"),)},
    ],
)
async def test_names_that_could_mean_two_things_are_refused(world: World, wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        await world.catalog.set_adapter(replace(SQL, **wrong), actor=ACTOR)  # type: ignore[arg-type]


async def test_a_model_with_adapters_is_not_removed(world: World) -> None:
    await world.catalog.add_model(MODEL, actor=ACTOR)
    await world.catalog.set_adapter(SQL, actor=ACTOR)
    await refused(world.catalog.remove_model("small", actor=ACTOR), Conflict, "model_in_use", "has adapters: small:sql")
    await world.catalog.remove_adapter("small:sql", actor=ACTOR)
    await world.catalog.remove_model("small", actor=ACTOR)
