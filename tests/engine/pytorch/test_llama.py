"""The decoder against a textbook one, and what a model folder may look like."""

import json
import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from axon.engine.engine import Engine
from axon.engine.load.architecture import read_architecture
from axon.engine.load.rope import Rope
from axon.errors import Misconfigured
from tests.engine.builders import TINY_CONFIG, make_add, make_tiny_llama, run_to_end, with_config


def textbook_logits(folder: Path, token_ids: list[int]) -> torch.Tensor:
    """A Llama as the paper has it: one sequence, no cache, library attention, complex rotation in pairs."""
    config = json.loads((folder / "config.json").read_text())
    weights = load_file(folder / "model.safetensors")
    dim, length = config["head_dim"], len(token_ids)
    angles = torch.outer(torch.arange(length), config["rope_theta"] ** (-torch.arange(0, dim, 2) / dim))

    def norm(rows: torch.Tensor, name: str) -> torch.Tensor:
        return torch.nn.functional.rms_norm(rows, rows.shape[-1:], weights[name], config["rms_norm_eps"])

    def heads(rows: torch.Tensor, name: str) -> torch.Tensor:
        return (rows @ weights[name].T).view(length, -1, dim).transpose(0, 1)

    def turn(states: torch.Tensor) -> torch.Tensor:
        pairs = torch.complex(*states.chunk(2, dim=-1)) * torch.polar(torch.ones_like(angles), angles)
        return torch.cat([pairs.real, pairs.imag], dim=-1)

    hidden = weights["model.embed_tokens.weight"][token_ids]
    for index in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{index}"
        rows = norm(hidden, f"{prefix}.input_layernorm.weight")
        queries, keys, values = (heads(rows, f"{prefix}.self_attn.{name}_proj.weight") for name in "qkv")
        seen = torch.nn.functional.scaled_dot_product_attention(
            turn(queries)[None], turn(keys)[None], values[None], is_causal=True, enable_gqa=True
        )
        hidden = hidden + seen[0].transpose(0, 1).reshape(length, -1) @ weights[f"{prefix}.self_attn.o_proj.weight"].T
        rows = norm(hidden, f"{prefix}.post_attention_layernorm.weight")
        gate, up, down = (weights[f"{prefix}.mlp.{name}_proj.weight"] for name in ("gate", "up", "down"))
        hidden = hidden + (torch.nn.functional.silu(rows @ gate.T) * (rows @ up.T)) @ down.T
    return norm(hidden, "model.norm.weight") @ weights["model.embed_tokens.weight"].T


def test_greedy_tokens_equal_the_textbooks(tiny_llama: Path) -> None:
    prompt = [(7 * index) % 250 for index in range(40)]
    tokens = run_to_end(Engine(with_config(), tiny_llama), [make_add(prompt=prompt, max_tokens=12, ignore_eos=True)])[
        "a"
    ]
    known = list(prompt)
    for token in tokens:
        logits = textbook_logits(tiny_llama, known)[-1]
        assert logits[token] >= logits.max() - 1e-4
        known.append(token)


def test_a_sharded_folder_is_the_same_model(tiny_llama: Path, tmp_path: Path) -> None:
    tensors = load_file(tiny_llama / "model.safetensors")
    names = sorted(tensors)
    for shard in range(2):
        part = {name: tensors[name] for name in names[shard::2]}
        save_file(part, tmp_path / f"model-{shard + 1:05}-of-00002.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(TINY_CONFIG))
    add = make_add(prompt=20, max_tokens=8, ignore_eos=True)
    whole, sharded = (run_to_end(Engine(with_config(), folder), [add]) for folder in (tiny_llama, tmp_path))
    assert whole == sharded


def test_bfloat16_runs(tiny_llama: Path) -> None:
    engine = Engine(with_config(dtype="bfloat16"), tiny_llama)
    assert engine.ready().kernel == "torch-bfloat16"
    assert len(run_to_end(engine, [make_add(prompt=20, max_tokens=8, ignore_eos=True)])["a"]) == 8


def test_end_ids_come_from_the_generation_config_first(tmp_path: Path) -> None:
    folder = make_tiny_llama(tmp_path)
    assert read_architecture(folder).eos_ids == {257}
    (folder / "generation_config.json").write_text('{"eos_token_id": [1, 2]}')
    assert read_architecture(folder).eos_ids == {1, 2}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model_type": "gpt2"}, "gpt2"),
        ({"attention_bias": True}, "biases"),
        ({"rope_scaling": {"rope_type": "yarn"}}, "yarn"),
    ],
)
def test_a_model_of_another_kind_is_refused_by_name(tmp_path: Path, change: dict[str, object], reason: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps(TINY_CONFIG | change))
    with pytest.raises(Misconfigured, match=reason):
        read_architecture(tmp_path)


def test_llama3_rope_leaves_short_waves_and_slows_long_ones() -> None:
    plain, scaled = Rope(theta=500000.0), Rope(theta=500000.0, kind="llama3", factor=8.0)
    pairs = list(zip(plain.frequencies(128), scaled.frequencies(128), strict=True))
    assert pairs[0][0] == pairs[0][1]
    assert math.isclose(pairs[-1][1], pairs[-1][0] / 8)
    ratios = [new / old for old, new in pairs]
    assert ratios == sorted(ratios, reverse=True)


def test_too_little_kv_memory_is_said_at_once(tiny_llama: Path) -> None:
    with pytest.raises(Misconfigured, match="one block"):
        Engine(with_config(kv_memory_bytes=10), tiny_llama)
