"""A model that cannot be served is refused before an engine starts, by a sentence that says why."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer
from tokenizers.models import BPE

from axon.bootstrap.models.model import deployment_of, prepare_model
from axon.engine.load.tensor_files import INDEX
from axon.engine.protocol.messages import Ready
from axon.errors import Misconfigured, Unsupported
from axon.settings import Settings
from axon.text.template import require_template
from tests.engine.builders import TINY_CONFIG
from tests.engine.load.convert.gguf_files import write_gguf

READY = Ready(kernel="k", max_model_len=512, max_sequences=8, num_blocks=8, block_size=16)


@pytest.fixture
def folder(tiny_llama: Path, tmp_path: Path) -> Path:
    """A whole model with a tokenizer."""
    folder = Path(shutil.copytree(tiny_llama, tmp_path / "model"))
    Tokenizer(BPE(vocab={"a": 0}, merges=[])).save(str(folder / "tokenizer.json"))
    return folder


def prepare(model: Path, steps: list[tuple[str, float | None]] | None = None) -> object:
    settings = Settings(data_dir=model.parent / "data", model=str(model))
    return prepare_model(settings, lambda text, share: (steps if steps is not None else []).append((text, share)))


def shard(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    places = {name: f"model-{1 + index % 2:05}-of-00002.safetensors" for index, name in enumerate(tensors)}
    for each in set(places.values()):
        save_file({name: tensors[name] for name, place in places.items() if place == each}, folder / each)
    (folder / INDEX).write_text(json.dumps({"weight_map": places}))


def lose_a_shard(folder: Path) -> None:
    shard(folder)
    (folder / "model-00002-of-00002.safetensors").unlink()


def lose_a_shard_and_the_index(folder: Path) -> None:
    lose_a_shard(folder)
    (folder / INDEX).unlink()


def cut_short(folder: Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:-100])


def cut_off_the_header(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:50])


def lose_a_tensor(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, folder / "model.safetensors")


def quantise(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    name = "model.layers.0.mlp.up_proj.weight"
    save_file(tensors | {name: tensors[name].astype("int8")}, folder / "model.safetensors")


def configure(**changes: object) -> Callable[[Path], object]:
    return lambda folder: (folder / "config.json").write_text(json.dumps(TINY_CONFIG | changes))


def pickle(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def put_a_gguf_inside(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "weights.gguf")


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "no such path": (lambda folder: shutil.rmtree(folder), "There is no model at"),
    "no config": (lambda folder: (folder / "config.json").unlink(), "has no config.json"),
    "config no JSON": (lambda folder: (folder / "config.json").write_text("{"), "config.json cannot be read"),
    "another architecture": (
        configure(model_type="mamba"),
        "'mamba' are not supported yet: the engine lacks state space layers; the nearest .* works is llama",
    ),
    "other biases": (configure(attention_bias=True), "attention_bias"),
    "quantised by config": (configure(quantization_config={"quant_method": "bitnet"}), "'bitnet'"),
    "quantised by tensor": (quantise, "up_proj.* is quantised .I8"),
    "another shape": (configure(hidden_size=64), r"is \[272, 48\]; config.json makes it \[272, 64\]"),
    "a missing shard": (lose_a_shard, "not complete: model-00002-of-00002.safetensors is missing"),
    "a missing shard and no index": (lose_a_shard_and_the_index, "model-00002-of-00002.safetensors is missing"),
    "cut short": (cut_short, "cut short or damaged: it has [0-9]+ bytes instead of"),
    "cut off in the header": (cut_off_the_header, "cut short or no safetensors file"),
    "a missing tensor": (lose_a_tensor, r"no tensor 'model\.layers\.1\.mlp\.up_proj\.weight'"),
    "pickled": (pickle, "can run code: convert them to safetensors"),
    "a folder of GGUF": (put_a_gguf_inside, "name the file itself: .*weights.gguf"),
    "no tokenizer": (lambda folder: (folder / "tokenizer.json").unlink(), "has no tokenizer.json"),
    "a broken tokenizer": (
        lambda folder: (folder / "tokenizer.json").write_text("{}"),
        "tokenizer.json cannot be read",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_folder_is_refused_by_a_sentence(case: str, folder: Path) -> None:
    harm, reason = BROKEN[case]
    prepare(folder)
    harm(folder)
    with pytest.raises(Misconfigured, match=reason):
        prepare(folder)


def test_shards_are_whole_without_their_index_too(folder: Path) -> None:
    shard(folder)
    (folder / INDEX).unlink()
    prepare(folder)


def test_a_file_that_is_no_gguf_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_text("not found\n" * 10)
    with pytest.raises(Misconfigured, match="cannot be read as GGUF"):
        prepare(tmp_path / "model.gguf")


def test_without_a_chat_template_the_reason_is_given(folder: Path) -> None:
    model = prepare_model(Settings(data_dir=folder.parent / "data", model=str(folder)), lambda text, share: None)
    with pytest.raises(Unsupported, match="no chat template; use completions"):
        require_template(model.text.template)


def test_a_gguf_file_is_converted_into_the_data_folder_once(tiny_llama: Path, tmp_path: Path) -> None:
    source = write_gguf(tmp_path / "Tiny.Q4.gguf", tiny_llama)
    steps: list[tuple[str, float | None]] = []
    prepare(source, steps)
    assert steps[-1] == ("Converting the model (once)", 1.0)
    assert [path.name for path in (tmp_path / "data" / "models").iterdir()] == [Settings(model=str(source)).model_name]
    count = len(steps)
    prepare(source, steps)
    assert len(steps) == count


def test_other_weights_are_another_version(folder: Path) -> None:
    settings = Settings(data_dir=folder.parent / "data", model=str(folder))

    def version() -> str:
        return deployment_of("m", prepare_model(settings, lambda text, share: None), READY, 0.0).version

    before = version()
    assert version() == before
    tensors = load_file(folder / "model.safetensors")
    save_file({name: values * 1.01 for name, values in tensors.items()}, folder / "model.safetensors")
    assert version() != before
