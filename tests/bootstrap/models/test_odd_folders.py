"""Whatever folder or file is added as a model, the refusal is one sentence that says what is missing and what works."""

import json
import os
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from safetensors.numpy import save_file

from axon.bootstrap.models.fetching import fetch_version
from axon.engine.config import EngineConfig
from axon.errors import AxonError, FetchFailed, InvalidInput
from axon.settings import Settings
from tests.faults.model import FOR_VLLM, make_model
from tests.services import warm
from tests.vllm_environment import stand_in_python

Make = Callable[[Path], Path]
HAS_LLAMA = "vLLM has LlamaForCausalLM"


def whole(folder: Path) -> Path:
    return make_model(folder, **FOR_VLLM)


def saying(**changes: Any) -> Make:
    """A model whose config.json says something else."""

    def make(folder: Path) -> Path:
        config = json.loads((whole(folder) / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | changes))
        return folder

    return make


def having(name: str, content: str | bytes) -> Make:
    """A model with another content in one of its files."""

    def make(folder: Path) -> Path:
        (whole(folder) / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return folder

    return make


def lacking(name: str, other: str = "") -> Make:
    """A model without one of its files, which may have another name."""

    def make(folder: Path) -> Path:
        whole(folder)
        (folder / name).rename(folder / other) if other else (folder / name).unlink()
        return folder

    return make


def header(content: bytes) -> bytes:
    return struct.pack("<Q", len(content)) + content


def torn(folder: Path) -> Path:
    path = whole(folder) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:5000])
    return folder


def adapter(folder: Path) -> Path:
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 8}))
    save_file({"lora_A.weight": np.zeros((8, 4), np.float32)}, folder / "adapter_model.safetensors")
    return folder


def adapter_with_config(folder: Path) -> Path:
    """As trainers write it that put the base model's config.json beside their adapter."""
    (lacking("model.safetensors")(folder) / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 8}))
    save_file({"lora_A.weight": np.zeros((8, 4), np.float32)}, folder / "adapter_model.safetensors")
    return folder


def pipeline(folder: Path) -> Path:
    """A diffusion pipeline: its parts lie below, one of which has layers of a language model."""
    nested(folder)
    (folder / "model_index.json").write_text(json.dumps({"_class_name": "StableDiffusionPipeline"}))
    return folder


def empty(folder: Path) -> Path:
    folder.mkdir()
    return folder


def nested(folder: Path) -> Path:
    folder.mkdir()
    whole(folder / "checkpoint-100")
    return folder


def sentences(folder: Path) -> Path:
    """A folder of sentence-transformers with an encoder that is not known."""
    saying(model_type="mpnet", architectures=["MPNetModel"])(folder)
    module = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
    (folder / "modules.json").write_text(json.dumps([module]))
    return folder


def a_file(name: str, content: bytes) -> Make:
    def make(folder: Path) -> Path:
        path = folder.with_name(name)
        path.write_bytes(content)
        return path

    return make


def gguf_of(architecture: str, part: float = 1.0) -> Make:
    def make(folder: Path) -> Path:
        path = folder.with_name("model.gguf")
        writer = gguf.GGUFWriter(str(path), architecture)
        writer.add_tensor("token_embd.weight", np.zeros((4, 8), np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        path.write_bytes(path.read_bytes()[: int(path.stat().st_size * part)])
        return path

    return make


DYNAMIC = {"rope_type": "dynamic", "factor": 2.0}
UNKNOWN: dict[str, tuple[Make, str]] = {
    "an architecture": (
        saying(model_type="zamba9", architectures=["LlamaForCausalLM"]),
        "the engine lacks its layers; the nearest architecture that works is llama",
    ),
    "a long name": (saying(model_type="x" * 99_999), "models of type 'x{60}…' are not supported yet"),
    "a rope": (saying(rope_scaling=DYNAMIC), "type 'dynamic' is not supported yet; the nearest that work are default"),
    "another's rope": (saying(rope_scaling={"type": "yarn"}), "llama models with .* 'yarn' .* that work have default"),
    "a rope's name": (saying(rope_scaling={"rope_type": ["a"]}), "the nearest that work are default"),
    "a quantisation": (saying(quantization_config={"quant_method": "aqlm"}), "'aqlm' is not read. Give the model in"),
    "MLX": (saying(quantization_config={"group_size": 64, "bits": 4}), "it names no quant_method, as MLX does not"),
    "an activation": (saying(hidden_act="relu2"), "'relu2' is not supported yet; llama works with 'silu'"),
    "biases": (
        saying(attention_bias=True),
        r"biases \(attention_bias\) are not supported yet; those without them work",
    ),
    "nothing": (saying(model_type=None), r"does not say what it is \(model_type\); these architectures work: llama"),
    "a list": (saying(model_type=["llama"]), r"does not say what it is \(model_type\)"),
}
"""Models that are whole, and that Axon's engine does not compute."""
BROKEN: dict[str, tuple[Make, str]] = {
    "no tokenizer": (lacking("tokenizer.json"), r"has no tokenizer\.json, .* transformers makes one"),
    "a tokenizer that is none": (having("tokenizer.json", "hello"), r"tokenizer\.json cannot be read"),
    "a tokenizer's config that is none": (having("tokenizer_config.json", "nope"), "tokenizer_config.json cannot be"),
    "a tokenizer's config in a list": (having("tokenizer_config.json", "[1]"), "it is no JSON object"),
    "a template that is no text": (having("chat_template.jinja", b"\xff\xfe"), "chat template cannot be read"),
    "a template that is none": (having("chat_template.jinja", "{% if %}"), "chat template cannot be read"),
    "hot": (having("generation_config.json", '{"temperature": "hot"}'), "cannot be understood: .*hot"),
    "not a number": (having("generation_config.json", '{"temperature": NaN}'), "temperature is no number"),
    "an end that is no token": (having("generation_config.json", '{"eos_token_id": "x"}'), "eos_token_id is neither"),
    "a shard": (
        lacking("model.safetensors", "model-00001-of-00002.safetensors"),
        "is not complete: model-00002-of-00002.safetensors is missing",
    ),
    "torn weights": (torn, r"model\.safetensors is cut short or damaged: it has 5000 bytes instead of"),
    "a deep header": (having("model.safetensors", header(b"[" * 200_000)), "its header cannot be read"),
    "a header in a list": (having("model.safetensors", header(b"[1]")), "its header cannot be read"),
    "no JSON": (having("config.json", "model_type: llama"), r"config\.json cannot be read: Expecting value"),
    "a list": (having("config.json", "[1, 2]"), r"config\.json cannot be read: it is no JSON object"),
    "deep": (having("config.json", "[" * 200_000), r"config\.json cannot be read: it is nested too deeply"),
    "huge": (
        having("config.json", '{"model_type": "llama", "a": "' + "x" * 9_000_000 + '"}'),
        "does not say 'vocab_size'",
    ),
    "no config": (lacking("config.json"), r"it has no config\.json"),
    "a rope's factor": (saying(rope_scaling={"type": "linear", "factor": "two"}), "factor of the rope scaling is no"),
    "an epsilon": (saying(rms_norm_eps="x"), "rms_norm_eps is no number from 0 on"),
    "an adapter": (adapter, "is a LoRA adapter .* `axon models adapters add MODEL NAME "),
    "an adapter with a config": (adapter_with_config, "is a LoRA adapter .* `axon models adapters add MODEL NAME "),
    "a diffusion pipeline": (pipeline, "is a diffusion pipeline .* makes no text"),
    "a part of one": (having("config.json", '{"_class_name": "AutoencoderKL"}'), "is a part of a diffusion pipeline"),
    "pictures alone": (
        saying(model_type="clip", architectures=["CLIPModel"]),
        "reads pictures or sounds and writes no",
    ),
    "pickles": (
        lacking("model.safetensors", "pytorch_model.bin"),
        "pickled weights only, .* convert them to safetensors",
    ),
    "an encoder": (
        saying(model_type="deberta", architectures=["DebertaModel"]),
        "nearest .* is bert, .* gives vectors",
    ),
    "sentences": (sentences, "lacks this encoder's layers; the nearest architecture that works is bert"),
    "nothing": (empty, r"has no model: there is neither a \.safetensors nor a \.gguf file"),
    "a checkpoint below": (nested, "no model at its top, but .*/checkpoint-100 has weights: give that folder"),
    "a file": (a_file("notes.txt", b"hello"), r"is neither a folder nor a \.gguf file\."),
    "weights alone": (a_file("model.safetensors", b"hello"), "Give the folder that it is in: "),
    "a GGUF of an unknown kind": (gguf_of("mamba"), "is a 'mamba' model; llama, .* vLLM may run it from a folder"),
    "a torn GGUF": (gguf_of("llama", 0.5), r"model\.gguf cannot be read as GGUF; it may be cut short"),
    "no GGUF": (a_file("model.gguf", b"hello"), r"model\.gguf cannot be read as GGUF"),
    "a folder of that name": (lambda folder: empty(folder.with_name("a.gguf")), r"is a folder, not a \.gguf file"),
    "nowhere": (lambda folder: folder, "There is no .* on this machine"),
}
"""Files that no engine could run."""
LEFT_TO_VLLM = {BROKEN[name][1] for name in ("a rope's factor", "an epsilon")}


async def refusal(tmp_path: Path, make: Make, python: str, engine: str = "") -> str:
    models = tmp_path / "models"
    settings = Settings(data_dir=tmp_path, models_dir=models, engine=EngineConfig(vllm_python=python))
    with pytest.raises(AxonError) as refused:
        await fetch_version(settings, model="odd", source=str(make(tmp_path / "odd")), engine=engine)
    assert isinstance(refused.value, InvalidInput | FetchFailed)
    said = refused.value.message
    assert "\n" not in said
    assert len(said) < 700
    assert str(models) not in said, "the path that was given says more than that in the cache"
    return said


@pytest.mark.parametrize(("make", "said"), UNKNOWN.values(), ids=UNKNOWN)
async def test_a_model_that_is_not_known_is_refused_with_what_works_and_what_vllm_may_do(
    tmp_path: Path, make: Make, said: str
) -> None:
    alone = await refusal(tmp_path, make, "")
    assert_says(alone, said)
    assert alone.endswith("; vLLM may run it as a second engine, and was not asked: set engine.vllm_python")
    shutil.rmtree(tmp_path / "odd")
    beside = await refusal(tmp_path, make, stand_in_python(tmp_path))
    assert_says(beside, said)
    assert HAS_LLAMA in beside
    assert "add it with --engine vllm" in beside


@pytest.mark.parametrize(
    ("make", "said", "engine"),
    [
        pytest.param(make, said, engine, id=f"{name}, {engine or 'axon'}")
        for name, (make, said) in BROKEN.items()
        for engine in ("", "vllm")
        if not (engine and said in LEFT_TO_VLLM)  # what config.json says of the layers is for vLLM to read
    ],
)
async def test_what_is_broken_or_no_model_is_refused_and_not_sent_to_vllm(
    tmp_path: Path, make: Make, said: str, engine: str
) -> None:
    told = await refusal(tmp_path, make, stand_in_python(tmp_path), engine)
    assert "--engine vllm may" not in told
    assert HAS_LLAMA not in told
    if not engine:
        assert_says(told, said)


def assert_says(told: str, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        raise AssertionError(told)


async def test_a_folder_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    inner = whole(tmp_path / "outer" / "odd")
    (tmp_path / "outer").chmod(0)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        with pytest.raises((FetchFailed, InvalidInput), match="cannot be read: Permission denied"):
            await fetch_version(Settings(data_dir=tmp_path, models_dir=tmp_path / "m"), model="odd", source=str(inner))
    finally:
        if is_root:
            os.seteuid(0)
        (tmp_path / "outer").chmod(0o755)


@pytest.mark.parametrize("kind", ["an architecture", "a quantisation"])
def test_the_command_ends_with_an_error_and_registers_nothing(tmp_path: Path, kind: str) -> None:
    source = UNKNOWN[kind][0](tmp_path / "odd")
    added = command(tmp_path, "add", "odd", str(source))
    assert added.returncode != 0
    assert "cannot be served" in added.stderr
    assert "Traceback" not in added.stderr
    assert command(tmp_path, "add", "whole", str(whole(tmp_path / "whole"))).returncode == 0
    assert command(tmp_path, "add", "whole", str(source)).returncode != 0
    registered = json.loads(command(tmp_path, "list", "--registered", "--json").stdout)
    assert [each["id"] for each in registered] == ["whole"]


def command(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("AXON_")}
    return warm.run(
        ["models", *arguments, "--data-dir", str(tmp_path / "data")], environ=plain, folder=tmp_path, timeout_s=120
    )
