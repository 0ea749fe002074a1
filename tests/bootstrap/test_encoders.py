"""An embedding model as a version: its configuration comes with it, and gateways know how to ask it."""

import json
from pathlib import Path

import pytest

from axon.bootstrap.models.fetching import fetch_version, fetch_version_text, opened_version
from axon.bootstrap.models.memory import need_of
from axon.bootstrap.models.model import prepare_model
from axon.domain.model.classes import Activation, Classes
from axon.domain.model.embeds import Embeds
from axon.domain.registry.model import Capability
from axon.domain.registry.record import record_of, row_of
from axon.engine.config import EngineConfig
from axon.engine.load.encoder import read_encoder
from axon.engine.load.pooled_decoder import read_pooled_decoder
from axon.errors import InvalidInput
from axon.settings import Settings
from tests.engine.encoder.models import classifier, decoder, made
from tests.weights.models import make_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small encoder with the tokenizer of another model."""
    make_model(tmp_path / "text")
    folder = made(tmp_path / "encoder", pooling="cls_token")
    (folder / "tokenizer.json").write_bytes((tmp_path / "text" / "tokenizer.json").read_bytes())
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"query": "query: "}}))
    return folder


async def test_a_folder_becomes_a_version_that_says_how_it_is_asked(folder: Path, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data")
    fetched = await fetch_version(settings, model="small", source=str(folder), label="v1")
    version = fetched.version
    assert fetched.capabilities == (Capability.EMBEDDINGS,)
    assert version.max_model_len == 36
    assert version.embeds is not None
    assert (version.embeds.dimensions, version.embeds.prompts) == (32, (("query", "query: "),))
    assert record_of(row_of(version)) == version
    async with opened_version(settings, version) as kept:
        assert read_encoder(kept).pooling == "cls"
    assert (await fetch_version_text(settings, version)).mark == version.text


async def test_an_encoder_that_cannot_run_is_refused_when_it_is_added(folder: Path, tmp_path: Path) -> None:
    modules = json.loads((folder / "modules.json").read_text())
    dense = [{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}]
    (folder / "modules.json").write_text(json.dumps(modules + dense))
    with pytest.raises(InvalidInput, match="'Dense' is not supported yet"):
        await fetch_version(Settings(data_dir=tmp_path / "data"), model="small", source=str(folder))


def test_it_needs_memory_for_its_weights_in_float32_and_for_no_blocks(folder: Path, tmp_path: Path) -> None:
    model = prepare_model(Settings(data_dir=tmp_path / "data", model=str(folder)), lambda what, share: None)
    need = need_of("small", model, EngineConfig())
    assert (need.weights, need.kv) == ((folder / "model.safetensors").stat().st_size // 4 * 4 - _header(folder), 0)


def _header(folder: Path) -> int:
    """Bytes before the tensors."""
    raw = (folder / "model.safetensors").read_bytes()
    return 8 + int.from_bytes(raw[:8], "little")


async def test_a_classifier_becomes_a_version_that_names_its_classes(folder: Path, tmp_path: Path) -> None:
    classifier(tmp_path / "classes", "Bert", num_labels=2, id2label={0: "sad", 1: "glad"})
    (tmp_path / "classes" / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    settings = Settings(data_dir=tmp_path / "data")
    fetched = await fetch_version(settings, model="moods", source=str(tmp_path / "classes"))
    assert fetched.capabilities == (Capability.CLASSIFICATION,)
    assert fetched.version.embeds is not None
    assert fetched.version.embeds.classes == Classes(labels=("sad", "glad"), activation=Activation.SOFTMAX)
    assert record_of(row_of(fetched.version)) == fetched.version


async def test_a_classifier_without_its_head_is_refused_when_it_is_added(folder: Path, tmp_path: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["BertForSequenceClassification"]}))
    (folder / "modules.json").unlink()
    with pytest.raises(InvalidInput, match=r"pooler\.dense"):
        await fetch_version(Settings(data_dir=tmp_path / "data"), model="small", source=str(folder))


async def test_a_decoder_with_a_pooling_beside_it_becomes_an_embedding_model(folder: Path, tmp_path: Path) -> None:
    decoder(tmp_path / "decoder", "Qwen3")
    (tmp_path / "decoder" / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    settings = Settings(data_dir=tmp_path / "data", model=str(tmp_path / "decoder"))
    fetched = await fetch_version(settings, model="qwen", source=settings.model)
    assert fetched.capabilities == (Capability.EMBEDDINGS,)
    assert (fetched.version.max_model_len, fetched.version.embeds) == (64, Embeds(dimensions=32))
    async with opened_version(settings, fetched.version) as kept:
        assert read_pooled_decoder(kept).pooling == "lasttoken"
    model = prepare_model(settings, lambda what, share: None)
    whole = need_of("qwen", model, EngineConfig()).weights
    assert need_of("qwen", model, EngineConfig(dtype="bfloat16")).weights == whole // 2
