"""The model that ``--model`` means: a path, a name in the models folder, or a sentence on how to get one."""

from dataclasses import replace
from pathlib import Path

import pytest

from axon.bootstrap.models.model import (
    Model,
    Text,
    _guard,
    deployment_of,
    find_folder,
    own_head,
    prepare_model,
    prepare_text,
)
from axon.bootstrap.worker.spare import make_engine
from axon.engine.config import EngineConfig
from axon.engine.load.head_folder import DEFAULT_HEAD
from axon.engine.protocol.messages import Ready
from axon.errors import Misconfigured
from axon.gateway.openai.requests import CompletionRequest
from axon.gateway.responses.requests import ResponseRequest
from axon.settings import Settings
from axon.text.tokenizer import ByteTokenizer
from tests.engine.builders import make_tiny_llama
from tests.engine.load.convert.gguf_files import write_gguf

_READY = Ready(kernel="stub", max_model_len=100, max_sequences=1, num_blocks=1, block_size=1)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A models folder with one of each kind."""
    folder = tmp_path_factory.mktemp("models")
    make_tiny_llama(folder / "tiny")
    make_tiny_llama(folder / "Maker" / "tiny-two")
    write_gguf(folder / "small.gguf", folder / "tiny")
    return folder


def prepared(settings: Settings) -> Path:
    return find_folder(settings, lambda _stage, _share: None)


@pytest.mark.parametrize(
    ("name", "lies_at", "called"),
    [
        ("tiny", "tiny", "tiny"),
        ("Maker/tiny-two", "Maker/tiny-two", "tiny-two"),
        ("small", "small", "small"),
        ("small.gguf", "small", "small"),
    ],
)
def test_a_model_of_the_models_folder_is_found_by_its_name(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, lies_at: str, called: str
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = Settings(data_dir=tmp_path, models_dir=models, model=name)
    assert prepared(settings) == models / lies_at
    assert settings.model_name == called


@pytest.mark.parametrize(("name", "lies_at"), [("Maker/tiny-two", "Maker/tiny-two"), ("small", "small")])
def test_a_draft_model_is_found_as_a_model_is(models: Path, tmp_path: Path, name: str, lies_at: str) -> None:
    engine = EngineConfig(draft_model=name)
    settings = Settings(data_dir=tmp_path, models_dir=models, model="small", engine=engine)
    model = prepare_model(settings, lambda _stage, _share: None)
    assert (model.folder, model.draft) == (models / "small", models / lies_at)
    process = make_engine(settings, model, None)
    assert process._config.draft_model == str(models / lies_at), "the engine is told the folder"
    with_none = replace(settings, engine=EngineConfig(draft_model=name, speculate=False))
    assert prepare_model(with_none, lambda _stage, _share: None).draft is None
    missing = replace(settings, engine=EngineConfig(draft_model="other"))
    with pytest.raises(Misconfigured, match="There is no model other"):
        prepare_model(missing, lambda _stage, _share: None)


def test_a_path_goes_before_a_name(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_tiny_llama(tmp_path / "tiny")
    assert prepared(Settings(data_dir=tmp_path, models_dir=models, model="tiny")) == Path("tiny")


def test_a_name_of_a_hub_is_refused_with_how_to_get_the_model(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, model="Qwen/Qwen3-0.6B")
    for prepare in (prepared, prepare_text):
        with pytest.raises(Misconfigured) as refused:
            prepare(settings)
        said = refused.value.message
        assert "Qwen/Qwen3-0.6B" in said
        assert str(tmp_path / "models") in said
        assert ".gguf" in said
        assert "hf download Qwen/Qwen3-0.6B --local-dir" in said
        assert len(said.splitlines()) == 1


def test_a_path_that_is_not_there_is_no_name_of_a_hub(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="There is no model at") as refused:
        prepared(Settings(data_dir=tmp_path, model=str(tmp_path / "missing.gguf")))
    assert "download" not in refused.value.message


@pytest.mark.parametrize(("temperature", "named", "holds"), [(None, None, 1.15), (None, 1.3, 1.3), (0.0, None, 1.0)])
def test_the_guard_against_loops_holds_where_a_request_leaves_sampling_to_the_server(
    temperature: float | None, named: float | None, holds: float
) -> None:
    model = Model(
        folder=None, text=Text(tokenizer=ByteTokenizer(), template=None, mark="bytes"), repetition_penalty=1.15
    )
    deployment = deployment_of("m", model, _READY, now=0.0)
    request = CompletionRequest(model="m", prompt="p", temperature=temperature, repetition_penalty=named)
    assert request.sampling(8, deployment).repetition_penalty == holds
    if named is None:
        response = ResponseRequest(model="m", input="", temperature=temperature)
        assert response.sampling(deployment).repetition_penalty == holds


def test_no_model_but_the_packaged_one_is_guarded(models: Path, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, models_dir=models, model="small")
    model = prepare_model(settings, lambda _stage, _share: None)
    assert deployment_of("m", model, _READY, now=0.0).repetition_penalty == 1.0


def test_the_packaged_model_is_guarded_against_loops_by_the_penalty_that_its_quality_was_measured_with() -> None:
    assert _guard(Settings()) == 1.15
    assert _guard(replace(Settings(), model="other")) == 1.0


def test_the_default_model_comes_with_a_head_of_its_own(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    assert settings.model == "default"
    assert own_head(settings) == DEFAULT_HEAD
    assert own_head(replace(settings, model="other")) is None
    for engine in (EngineConfig(draft_model="none"), EngineConfig(draft_model="x"), EngineConfig(speculate=False)):
        assert own_head(replace(settings, engine=engine)) is None
    files = {path.name: path.stat().st_size for path in DEFAULT_HEAD.iterdir()}
    assert files.keys() == {"config.json", "model.safetensors", "training.json"}
    assert sum(files.values()) <= 8_000_000
