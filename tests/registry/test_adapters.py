"""Administration of adapters: added, given other files, refused, removed."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from axon.adapters.store.sqlite import SqliteStore
from axon.domain.registry.adapter import Adapter, AdapterFiles
from axon.domain.registry.version import EngineSettings
from axon.errors import Conflict, InvalidInput, NotFound
from axon.registry.catalog import Catalog
from axon.registry.writer import RegistryWriter
from axon.runtime.clock import FakeClock
from tests.domain.registry.builders import version
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


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (EngineSettings(dtype="fp8"), "'small@v1' has dtype = fp8. Merge the adapter into its model"),
        (EngineSettings(more=(("tensor_parallel", "2"),)), "has tensor_parallel = 2"),
        (EngineSettings(kind="vllm"), "has engine = vllm"),
        (EngineSettings(more=(("adapter_slots", "0"),)), "has adapter_slots = 0"),
    ],
)
async def test_an_adapter_that_no_version_could_run_is_refused_with_what_to_do(
    world: World, settings: EngineSettings, words: str
) -> None:
    unable = replace(version("v1"), settings=settings)
    await world.catalog.add_model(MODEL, unable, deploys=False, actor=ACTOR)
    with pytest.raises(InvalidInput, match=re.escape(words)):
        await world.catalog.set_adapter(SQL, actor=ACTOR)
    assert not (await world.catalog.snapshot()).adapters
    await world.catalog.add_version(version("v2"), actor=ACTOR)
    assert (await world.catalog.set_adapter(SQL, actor=ACTOR)).id == "small:sql"


async def test_the_files_that_sessions_may_have_are_kept_in_the_store_and_end_with_the_name(world: World) -> None:
    for number in range(7):
        files = AdapterFiles(digest=f"{number}" * 64, source=f"/adapters/{number}", source_revision=f"r{number}")
        await world.catalog.set_adapter(replace(SQL, files=(files,)), actor=ACTOR)
    kept = (await world.catalog.snapshot()).adapters["small:sql"]
    assert [each.source for each in kept.files] == [f"/adapters/{number}" for number in (6, 5, 4, 3, 2)]
    job = kept.for_job("3" * 12)
    assert (job.digest, job.source, job.source_revision) == ("3" * 64, "/adapters/3", "r3")
    back = replace(SQL, files=(AdapterFiles(digest="4" * 64, source="/adapters/moved"),))
    kept = await world.catalog.set_adapter(back, actor=ACTOR)
    assert [each.source[10:] for each in kept.files] == ["moved", "6", "5", "3", "2"], "each once, the latest source"
    await world.catalog.remove_adapter("small:sql", actor=ACTOR)
    again = await world.catalog.set_adapter(replace(SQL, tenant="acme"), actor=ACTOR)
    assert again.files == SQL.files, "another owner of the name gets no files of the one before"


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
