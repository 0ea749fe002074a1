"""A GGUF file becomes a model folder, whole or not at all, and again when the file has changed."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFReader, GGUFWriter, quants
from hypothesis import given, settings
from hypothesis import strategies as st

from axon.engine.engine import Engine
from axon.engine.load.architecture import read_architecture
from axon.engine.load.convert.gguf import MANIFEST, STAMP, convert_gguf, is_converted
from axon.engine.load.convert.tensors import unpermute
from axon.engine.load.rope import Rope
from axon.engine.load.weights import Weights
from axon.errors import Misconfigured
from axon.text.template import load_template, require_template
from axon.text.tokenizer import load_tokenizer
from tests.engine.builders import RELATIVES, make_add, make_tiny_llama, run_to_end, with_config
from tests.engine.load.convert.gguf_files import gguf_tensors, permute, write_gguf
from tests.long import examples

TYPES = [GGMLQuantizationType.F16, *sorted(quants._type_traits)]
"""All that the gguf library can turn into numbers, beside float32."""


@pytest.fixture
def source(tiny_llama: Path, tmp_path: Path) -> Path:
    return write_gguf(tmp_path / "m.gguf", tiny_llama)


def test_a_converted_folder_runs_and_speaks(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    steps: list[float] = []
    convert_gguf(source, folder, steps.append)
    assert is_converted(source, folder)
    assert steps == sorted(steps)
    assert steps[-1] == 1.0
    tokenizer = load_tokenizer(folder)
    assert tokenizer.decode(tokenizer.encode("he said 12")) == "he said 12"
    assert tokenizer.eos_ids == {0}
    assert require_template(load_template(folder)).render([{"content": "x"}]) == "x<|end|>"
    tokens = run_to_end(Engine(with_config(), folder), [make_add(prompt=6, max_tokens=5, ignore_eos=True)])
    assert len(tokens["a"]) == 5


def test_the_pairs_of_rotated_rows_are_put_back() -> None:
    weight = np.random.default_rng(0).normal(size=(24, 5)).astype(np.float32)
    assert np.array_equal(unpermute(permute(weight, 3), 3), weight)


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.name)
def test_every_quantisation_the_library_reads_is_converted_exactly(kind: GGMLQuantizationType, tmp_path: Path) -> None:
    folder = make_tiny_llama(
        tmp_path / "model",
        hidden_size=256,
        intermediate_size=256,
        num_hidden_layers=1,
        head_dim=32,
        num_attention_heads=8,
    )
    source = write_raw(tmp_path / "m.gguf", folder, kind)
    convert_gguf(source, tmp_path / "out")
    expected = {each.name: quants.dequantize(each.data, each.tensor_type) for each in GGUFReader(source).tensors}
    with Weights(tmp_path / "out", torch.float32) as weights:
        assert np.array_equal(weights.take("model.embed_tokens.weight").numpy(), expected["token_embd.weight"])
        assert np.array_equal(weights.take("model.layers.0.mlp.down_proj.weight"), expected["blk.0.ffn_down.weight"])
        queries = permute(weights.take("model.layers.0.self_attn.q_proj.weight").numpy(), 8)
        assert np.array_equal(queries, expected["blk.0.attn_q.weight"])
    assert len(run_to_end(Engine(with_config(), tmp_path / "out"), [make_add(ignore_eos=True)])["a"]) == 4


def write_raw(path: Path, folder: Path, kind: GGMLQuantizationType) -> Path:
    """Of matrices, bytes that make small finite numbers in every layout; the library packs few of the kinds itself."""
    full = write_gguf(path.with_name("full.gguf"), folder)
    reader, writer = GGUFReader(full), GGUFWriter(path, "llama")
    for field in list(reader.fields.values())[4:]:
        if field.name != "general.architecture":
            writer.add_key_value(
                field.name, field.contents(), field.types[0], field.types[1] if field.types[1:] else None
            )
    random = np.random.default_rng(3)
    for tensor in reader.tensors:
        if len(tensor.shape) == 1:
            writer.add_tensor(tensor.name, tensor.data)
            continue
        columns, rows = (int(size) for size in tensor.shape)
        block, num_bytes = GGML_QUANT_SIZES[kind]
        raw = random.integers(0, 0x30, (rows, columns // block * num_bytes), dtype=np.uint8)
        writer.add_tensor(tensor.name, raw, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_half_precision_is_kept_as_it_is(tiny_llama: Path, tmp_path: Path) -> None:
    for kind in (GGMLQuantizationType.F16, GGMLQuantizationType.BF16):
        source, folder = write_gguf(tmp_path / f"{kind.name}.gguf", tiny_llama, kind=kind), tmp_path / kind.name
        convert_gguf(source, folder)
        whole = write_gguf(tmp_path / "full.gguf", tiny_llama)
        convert_gguf(whole, tmp_path / "full")
        assert (folder / "model.safetensors").stat().st_size < 0.6 * (
            tmp_path / "full/model.safetensors"
        ).stat().st_size


def test_the_parts_of_a_split_file_are_one_model(tiny_llama: Path, tmp_path: Path) -> None:
    first, second = (tmp_path / f"m-0000{number}-of-00002.gguf" for number in (1, 2))
    names = list(gguf_tensors(tiny_llama))
    write_gguf(first, tiny_llama, without=names[-1])
    writer = GGUFWriter(second, "llama")
    writer.add_tensor(names[-1], gguf_tensors(tiny_llama)[names[-1]])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    convert_gguf(first, tmp_path / "parts")
    convert_gguf(write_gguf(tmp_path / "m.gguf", tiny_llama), tmp_path / "whole")
    adds = [make_add(prompt=6, max_tokens=5, ignore_eos=True)]
    parts, whole = (run_to_end(Engine(with_config(), tmp_path / name), adds) for name in ("parts", "whole"))
    assert parts == whole
    second.unlink()
    with pytest.raises(Misconfigured, match=r"m-00002-of-00002\.gguf is missing"):
        convert_gguf(first, tmp_path / "again")


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another architecture": ({"architecture": "gpt2"}, "'gpt2' model; llama, .* and llama is the nearest"),
    "one that folders have": ({"architecture": "gemma3"}, r"give it as a folder of safetensors \(gemma3_text\)"),
    "experts": ({"metadata": {"llama.expert_count": 8}}, "mixture of experts.*as a folder of safetensors"),
    "yarn": ({"metadata": {"llama.rope.scaling.type": "yarn"}}, "yarn"),
    "half a head rotated": ({"metadata": {"llama.rope.dimension_count": 4}}, "a part of each head"),
    "no tokenizer": ({"tokenizer": ""}, "no tokenizer"),
    "another tokenizer": ({"tokenizer": "t5"}, "tokenizers of kind 't5'"),
    "another pre-tokenizer": ({"pre": "unheard-of"}, "unheard-of"),
    "a missing tensor": ({"without": "blk.1.ffn_up.weight"}, r"no tensor 'model\.layers\.1\.mlp\.up_proj\.weight'"),
    "a bias": ({"more": {"blk.0.attn_q.bias": np.zeros(48, np.float32)}}, r"blk\.0\.attn_q\.bias"),
    "a wrong shape": ({"more": {"output_norm.weight": np.zeros(5, np.float32)}}, r"is \[5\]; .* \[48\]"),
    "another quantisation": ({"more": {"output_norm.weight": np.zeros(48, np.int32)}}, "quantised as I32"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_run_is_refused_by_name_and_leaves_nothing_behind(
    case: str, tiny_llama: Path, tmp_path: Path
) -> None:
    changes, reason = REFUSED[case]
    source = write_gguf(tmp_path / "m.gguf", tiny_llama, **changes)
    with pytest.raises(Misconfigured, match=reason):
        convert_gguf(source, tmp_path / "out")
    assert list(tmp_path.iterdir()) == [source]


@settings(max_examples=examples(60), deadline=None)
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_file_cut_short_anywhere_is_refused(share: float, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp() / "cut"
    if not (folder / "m.gguf").exists():
        write_gguf(make_tiny_llama(folder) / "m.gguf", folder)
    whole = (folder / "m.gguf").read_bytes()
    cut = folder / "cut.gguf"
    cut.write_bytes(whole[: int(share * (len(whole) - 64))])  # the last few bytes may be padding
    with pytest.raises(Misconfigured, match=r"cut\.gguf cannot be read as GGUF; it may be cut short"):
        convert_gguf(cut, folder / "out")
    assert not (folder / "out").exists()


@pytest.mark.parametrize("harm", ["format", "manifest", "cut weights", "no tokenizer"])
def test_a_conversion_by_another_version_or_a_damaged_one_is_made_again(
    source: Path, tmp_path: Path, harm: str
) -> None:
    folder = tmp_path / "out"
    convert_gguf(source, folder)
    weights = (folder / "model.safetensors").read_bytes()
    if harm == "format":
        (folder / MANIFEST).write_text(json.dumps(json.loads((folder / MANIFEST).read_text()) | {"format": 0}))
    elif harm == "manifest":
        (folder / MANIFEST).write_text("{")
    elif harm == "cut weights":
        (folder / "model.safetensors").write_bytes(weights[:-4])
    else:
        (folder / "tokenizer.json").unlink()
    assert not is_converted(source, folder)
    convert_gguf(source, folder)
    assert is_converted(source, folder)
    assert (folder / "model.safetensors").read_bytes() == weights


def test_a_changed_source_is_noticed_and_a_touched_one_is_not_converted_again(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    convert_gguf(source, folder)
    made = (folder / "model.safetensors").stat().st_ino
    os.utime(source, ns=(1, 1))
    assert is_converted(source, folder)
    assert json.loads((folder / STAMP).read_text())[source.name][1] == 1, "so its bytes are read once only"
    changed = bytearray(source.read_bytes())
    changed[-100] ^= 1
    source.write_bytes(changed)
    assert not is_converted(source, folder)
    convert_gguf(source, folder)
    assert is_converted(source, folder)
    assert (folder / "model.safetensors").stat().st_ino != made


def test_what_a_killed_conversion_left_is_neither_used_nor_kept(source: Path, tmp_path: Path) -> None:
    draft, folder = tmp_path / "out.draft", tmp_path / "out"
    convert_gguf(source, folder)
    shutil.move(folder, draft)
    (draft / MANIFEST).unlink()
    assert not is_converted(source, folder)
    convert_gguf(source, folder)
    assert is_converted(source, folder)
    assert not draft.exists()


def test_a_folder_of_somebody_else_is_left_alone(source: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "model.safetensors").write_text("precious")
    with pytest.raises(Misconfigured, match="is in the way"):
        convert_gguf(source, tmp_path / "out")
    with pytest.raises(Misconfigured, match="is in the way"):
        convert_gguf(source, tmp_path / "out" / "..")
    assert (tmp_path / "out" / "model.safetensors").read_text() == "precious"


def test_a_second_conversion_finds_nothing_left_to_do(source: Path, tmp_path: Path) -> None:
    steps: list[float] = []
    convert_gguf(source, tmp_path / "out", steps.append)
    count = len(steps)
    convert_gguf(source, tmp_path / "out", steps.append)
    assert len(steps) == count


def test_rope_factors_of_a_file_divide_the_frequencies(tmp_path: Path) -> None:
    folder = make_tiny_llama(tmp_path / "model", **RELATIVES["llama3"])
    convert_gguf(write_gguf(tmp_path / "m.gguf", folder), tmp_path / "out")
    expected = read_architecture(folder).rope.frequencies(8)
    assert read_architecture(tmp_path / "out").rope.frequencies(8) == pytest.approx(expected, rel=1e-6)
    assert expected != pytest.approx(Rope(theta=500000.0).frequencies(8))


def test_linear_rope_scaling_and_a_sliding_window_are_kept(tiny_llama: Path, tmp_path: Path) -> None:
    metadata: dict[str, Any] = {
        "llama.rope.scaling.type": "linear",
        "llama.rope.scaling.factor": 4.0,
        "llama.attention.sliding_window": 100,
    }
    convert_gguf(write_gguf(tmp_path / "m.gguf", tiny_llama, metadata=metadata), tmp_path / "out")
    architecture = read_architecture(tmp_path / "out")
    assert (architecture.rope.kind, architecture.rope.factor, architecture.max_model_len) == ("linear", 4.0, 100)


def test_a_file_without_a_chat_template_completes_but_does_not_chat(tiny_llama: Path, tmp_path: Path) -> None:
    convert_gguf(write_gguf(tmp_path / "m.gguf", tiny_llama, template=""), tmp_path / "out")
    assert load_template(tmp_path / "out") is None
    assert load_tokenizer(tmp_path / "out").encode("he") == [257]


def test_every_end_token_of_a_file_ends_an_answer(tiny_llama: Path, tmp_path: Path) -> None:
    metadata = {"tokenizer.ggml.eot_token_id": 260, "tokenizer.ggml.eom_token_id": 261}
    convert_gguf(write_gguf(tmp_path / "m.gguf", tiny_llama, metadata=metadata), tmp_path / "out")
    assert read_architecture(tmp_path / "out").eos_ids == {0, 260, 261}
    assert load_tokenizer(tmp_path / "out").eos_ids == {0, 260, 261}
