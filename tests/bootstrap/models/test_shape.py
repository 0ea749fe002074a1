"""A folder whose config.json makes no sense has no shape, and is told so in a sentence."""

import json
from pathlib import Path
from typing import Any

import pytest

from axon.bootstrap.models.shape import shape_of
from axon.errors import Misconfigured

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 100,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 512,
}


def _refusal(folder: Path, text: str) -> str:
    (folder / "config.json").write_text(text)
    with pytest.raises(Misconfigured) as refused:
        shape_of(str(folder))
    return refused.value.message


def test_a_folder_has_the_shape_that_its_config_says(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**CONFIG, "num_key_value_heads": None, "head_dim": 0}))
    shape = shape_of(str(tmp_path))
    assert (shape.num_layers, shape.num_kv_heads, shape.head_dim, shape.max_context) == (2, 4, 16, 512)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_attention_heads", 0),
        ("num_attention_heads", -4),
        ("num_hidden_layers", 10**12),
        ("vocab_size", "many"),
        ("vocab_size", True),
        ("hidden_size", 64.5),
        ("head_dim", -1),
        ("max_position_embeddings", None),
        ("max_position_embeddings", 10**400),
    ],
)
def test_a_size_that_no_model_has_is_named(name: str, value: object, tmp_path: Path) -> None:
    assert f"{name} is no whole number" in _refusal(tmp_path, json.dumps({**CONFIG, name: value}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rope_scaling", "x"),
        ("quantization_config", [1]),
        ("model_type", []),
        ("sliding_window", "x"),
        ("sliding_window", float("inf")),
    ],
)
def test_a_field_of_another_kind_is_refused(name: str, value: object, tmp_path: Path) -> None:
    assert _refusal(tmp_path, json.dumps({**CONFIG, "use_sliding_window": True, name: value}))


@pytest.mark.parametrize(
    ("text", "said"),
    [("[]", "no JSON object"), ("3", "no JSON object"), ("{", "cannot be read"), ("[" * 100_000, "nested too deeply")],
)
def test_what_is_no_object_is_refused(text: str, said: str, tmp_path: Path) -> None:
    assert said in _refusal(tmp_path, text)


def test_of_a_mixture_of_experts_all_are_counted_and_those_of_a_token_are_the_active_ones(tmp_path: Path) -> None:
    experts = {"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    dense = shape_of(str(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | experts))
    sparse = shape_of(str(tmp_path))
    expert, router = 3 * 64 * 128, 8 * 64
    assert dense.num_active_parameters == dense.num_parameters
    assert sparse.num_parameters == dense.num_parameters + 2 * (7 * expert + router)
    assert sparse.num_active_parameters == dense.num_parameters + 2 * (expert + router)
