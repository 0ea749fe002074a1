"""A model's bytes follow from its shape, as the engine counts them."""

import json
import math
from pathlib import Path

import pytest

from axon.bootstrap.models.shape import shape_of
from axon.domain.sizing.shape import KNOWN
from axon.errors import Misconfigured

SMOLLM = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 49152,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
}
QWEN = {
    **SMOLLM,
    "model_type": "qwen3",
    "vocab_size": 151936,
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 40960,
}
LLAMA_8B = {
    **SMOLLM,
    "vocab_size": 128256,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "tie_word_embeddings": False,
}
LLAMA_70B = {
    **LLAMA_8B,
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
}


@pytest.mark.parametrize(
    ("name", "config"),
    [("smollm2-135m", SMOLLM), ("qwen3-0.6b", QWEN), ("llama-3-8b", LLAMA_8B), ("llama-3-70b", LLAMA_70B)],
)
def test_a_known_shape_is_that_of_its_config(name: str, config: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "config.json").write_text(json.dumps(config))
    assert shape_of(str(tmp_path / name)) == KNOWN[name]


def test_kv_bytes_are_those_of_the_formula_on_the_page() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "performance.md").read_text()
    assert "12,240 by the formula 2 · layers · KV heads · (head dimension + 4)" in page
    assert KNOWN["smollm2-135m"].kv_bytes(int8=True) == 12_240
    assert KNOWN["llama-3-8b"].kv_bytes(int8=False) == 131_072


def test_weights_of_70b_are_those_of_the_page() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "gpu.md").read_text()
    assert "| 1 | 139 | – | does not fit |" in page
    assert math.isclose(KNOWN["llama-3-70b"].weight_bytes(int8=False) / 1e9, 139, rel_tol=0.02)


def test_what_is_no_model_is_refused_with_the_names_that_are_known(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="llama-3-8b"):
        shape_of(str(tmp_path))
