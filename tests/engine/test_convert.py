"""A GGUF file becomes a model folder, whole or not at all."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGUFWriter
from tokenizers import pre_tokenizers

from axon.engine.architecture import Rope, read_architecture
from axon.engine.convert import MANIFEST, convert_gguf, is_converted, unpermute
from axon.engine.engine import Engine
from axon.errors import Misconfigured
from axon.text.template import load_template, require_template
from axon.text.tokenizer import load_tokenizer
from tests.engine.builders import make_add, run_to_end, with_config


def permute(weight: np.ndarray[Any, Any], num_heads: int) -> np.ndarray[Any, Any]:
    """As the usual converter to GGUF does it."""
    rows, columns = weight.shape
    return weight.reshape(num_heads, 2, rows // num_heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def write_gguf(
    path: Path, *, architecture: str = "llama", pre: str = "smollm", rope_factors: tuple[float, ...] = ()
) -> Path:
    """A tiny random model with the bytes as its vocabulary."""
    tokens = ["<|end|>", *sorted(pre_tokenizers.ByteLevel.alphabet()), "he"]
    writer = GGUFWriter(path, architecture)
    writer.add_context_length(64)
    writer.add_embedding_length(16)
    writer.add_feed_forward_length(24)
    writer.add_block_count(1)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([3] + [1] * (len(tokens) - 1))
    writer.add_token_merges(["h e"])
    writer.add_eos_token_id(0)
    writer.add_chat_template("{{ messages[0].content }}{{ eos_token }}")
    random = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd": (len(tokens), 16),
        "output_norm": (16,),
        "blk.0.attn_norm": (16,),
        "blk.0.ffn_norm": (16,),
        "blk.0.attn_q": (16, 16),
        "blk.0.attn_k": (8, 16),
        "blk.0.attn_v": (8, 16),
        "blk.0.attn_output": (16, 16),
        "blk.0.ffn_gate": (24, 16),
        "blk.0.ffn_up": (24, 16),
        "blk.0.ffn_down": (16, 24),
    }
    if architecture == "qwen2":
        random_biases = {"attn_q": 16, "attn_k": 8, "attn_v": 8}
        for name, size in random_biases.items():
            writer.add_tensor(f"blk.0.{name}.bias", random.normal(0, 0.3, size).astype(np.float32))
    if architecture == "qwen3":
        shapes |= {"blk.0.attn_q_norm": (4,), "blk.0.attn_k_norm": (4,)}
    if rope_factors:
        writer.add_tensor("rope_freqs.weight", np.array(rope_factors, dtype=np.float32))
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", random.normal(0, 0.3, shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_converted_folder_runs_and_speaks(tmp_path: Path) -> None:
    source, folder = write_gguf(tmp_path / "m.gguf"), tmp_path / "out"
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


def test_a_failed_conversion_leaves_nothing_behind(tmp_path: Path) -> None:
    source = write_gguf(tmp_path / "m.gguf", pre="unheard-of")
    with pytest.raises(Misconfigured, match="unheard-of"):
        convert_gguf(source, tmp_path / "out")
    assert list(tmp_path.iterdir()) == [source]


def test_another_architecture_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="gpt2"):
        convert_gguf(write_gguf(tmp_path / "m.gguf", architecture="gpt2"), tmp_path / "out")


def test_a_conversion_of_another_source_or_version_is_made_again(tmp_path: Path) -> None:
    source, folder = write_gguf(tmp_path / "m.gguf"), tmp_path / "out"
    convert_gguf(source, folder)
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(manifest | {"format": 0}))
    assert not is_converted(source, folder)
    convert_gguf(source, folder)
    assert is_converted(source, folder)


@pytest.mark.parametrize(("architecture", "pre"), [("qwen2", "qwen2"), ("qwen3", "qwen2"), ("llama", "llama-bpe")])
def test_a_relative_of_llama_is_converted_too(architecture: str, pre: str, tmp_path: Path) -> None:
    source, folder = write_gguf(tmp_path / "m.gguf", architecture=architecture, pre=pre), tmp_path / "out"
    convert_gguf(source, folder)
    assert json.loads((folder / "config.json").read_text())["model_type"] == architecture
    tokenizer = load_tokenizer(folder)
    assert tokenizer.decode(tokenizer.encode("he's 1234\n\nx")) == "he's 1234\n\nx"
    tokens = run_to_end(Engine(with_config(), folder), [make_add(prompt=6, max_tokens=5, ignore_eos=True)])
    assert len(tokens["a"]) == 5


def test_rope_factors_of_a_file_divide_the_frequencies(tmp_path: Path) -> None:
    source, folder = write_gguf(tmp_path / "m.gguf", rope_factors=(1.0, 8.0)), tmp_path / "out"
    convert_gguf(source, folder)
    rope = read_architecture(folder).rope
    plain = Rope(theta=rope.theta).frequencies(4)
    assert rope.frequencies(4) == [plain[0], plain[1] / 8]
    run_to_end(Engine(with_config(), folder), [make_add(prompt=6, max_tokens=5, ignore_eos=True)])
