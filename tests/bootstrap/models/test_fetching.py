"""A version from its source: what is recorded of it, and that the engine's folder is what was fetched."""

import json
import os
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from axon.adapters.live.memory.presences import MemoryPresences
from axon.bootstrap.models.fetching import capabilities_of, fetch_version, opened_version
from axon.bootstrap.models.model import load_text
from axon.bootstrap.worker.deployed import find_deployed
from axon.domain.registry.deployment import Deployment, Member, MemberState
from axon.domain.registry.model import Capability
from axon.domain.registry.snapshot import Snapshot
from axon.domain.registry.version import EngineSettings
from axon.errors import InvalidInput
from axon.runtime.clock import FakeClock
from axon.settings import Settings
from axon.text.template import ChatTemplate
from tests.weights.models import make_model


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    make_model(folder / "tiny")
    (folder / "tiny" / "generation_config.json").write_text(json.dumps({"temperature": 0.6, "top_k": 20}))
    return folder


async def test_a_folder_becomes_a_version_with_all_that_a_gateway_needs(models: Path, tmp_path: Path) -> None:
    fetched = await fetch_version(Settings(data_dir=tmp_path), model="tiny", source=str(models / "tiny"), label="v1")
    version = fetched.version
    assert version.id == "tiny@v1"
    assert version.source == str(models / "tiny")
    assert version.max_model_len == 512
    assert version.text == load_text(models / "tiny").mark
    assert (version.advice.temperature, version.advice.top_k) == (0.6, 20)
    assert version.digest == fetched.folder.name
    assert fetched.num_bytes == sum(path.stat().st_size for path in (models / "tiny").iterdir())


async def test_a_gguf_file_becomes_a_version_and_is_converted_where_it_is_kept(models: Path, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    fetched = await fetch_version(settings, model="tiny", source=str(models / "tiny.gguf"))
    assert fetched.version.label == fetched.version.digest[:12]
    assert fetched.version.max_model_len == 512
    async with opened_version(settings, fetched.version) as folder:
        assert folder.parent == fetched.folder
        assert (folder / "model.safetensors").is_file()
        assert load_text(folder).mark == fetched.version.text


async def test_a_version_that_names_a_draft_version_is_served_with_its_files(models: Path, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    draft = (await fetch_version(settings, model="tiny", source=str(models / "tiny.gguf"), label="small")).version
    plain = (await fetch_version(settings, model="tiny", source=str(models / "tiny"), label="large")).version
    large = replace(plain, settings=EngineSettings(draft=draft.id))
    members = tuple(Member(version=each.id, state=MemberState.READY) for each in (large, draft))
    deployment = Deployment(name="chat", model="tiny", members=members, stable=large.id, created=1.0)
    known = Snapshot(revision=1, versions={each.id: each for each in (large, draft)}, deployments={"chat": deployment})
    worker = replace(settings, worker=replace(settings.worker, deployment="chat", version="large"))
    deployed = await find_deployed(worker, known, MemoryPresences(FakeClock()))
    async with AsyncExitStack() as stack:
        model = await deployed.model(lambda _what, _share: None, stack)
        assert model.draft is not None
        assert model.draft.parent.name == draft.digest
        assert model.folder != model.draft


async def test_a_model_that_the_engine_cannot_run_is_refused_when_it_is_added(models: Path, tmp_path: Path) -> None:
    folder = tmp_path / "odd"
    make_model(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "mamba"}))
    with pytest.raises(InvalidInput, match=r"odd cannot be served: .*'mamba' are not supported yet: .* the nearest"):
        await fetch_version(Settings(data_dir=tmp_path), model="odd", source=str(folder))


@pytest.mark.parametrize(("name", "label"), [("", "v1"), ("a@b", "v1"), ("a/b", "v1"), ("a", "v 1"), ("../a", "v1")])
async def test_a_name_that_no_model_can_have_is_refused_before_anything_is_fetched(
    tmp_path: Path, name: str, label: str
) -> None:
    with pytest.raises(InvalidInput, match="must have 1 to 64 letters"):
        await fetch_version(Settings(data_dir=tmp_path), model=name, source="/nowhere", label=label)
    assert os.listdir(tmp_path) == []


def test_what_a_model_can_do_is_guessed_from_its_template() -> None:
    plain = "{{ messages[0].content }}"
    assert capabilities_of(None) == ()
    assert capabilities_of(ChatTemplate(plain)) == (Capability.CHAT,)
    assert capabilities_of(ChatTemplate(plain + "{% if tools %}{{ tools | tojson }}{% endif %}")) == (
        Capability.CHAT,
        Capability.TOOLS,
    )
    assert Capability.REASONING in capabilities_of(ChatTemplate(plain + "</think>"))
