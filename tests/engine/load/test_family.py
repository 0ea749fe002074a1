"""The table of families: what the docs say of it, and what is said of a family that is not in it."""

import json
from pathlib import Path

import pytest

from axon.engine.load.architecture import read_architecture
from axon.engine.load.family import FAMILIES, family_of, unknown_sentence
from axon.errors import Misconfigured, UnknownModel
from tests.engine.builders import TINY_CONFIG
from tests.engine.checkpoints import NEWER

PAGE = Path(__file__).parents[3] / "docs" / "models.md"


def test_the_docs_have_the_table_of_the_code() -> None:
    gpu = {True: "bfloat16, fp8, float32", False: "bfloat16, float32"}
    rows = [
        f"| `{name}` | {family.title} | float32, bfloat16, int8 | {gpu[family.is_plain]} |"
        for name, family in FAMILIES.items()
    ]
    page = PAGE.read_text(encoding="utf-8").splitlines()
    head = page.index("| `model_type` | models | CPU | NVIDIA GPU |")
    assert page[head + 2 : head + 3 + len(rows)] == [*rows, ""]


def test_every_family_is_proved_by_a_tiny_model() -> None:
    proved = {"llama", "mistral", "qwen2", "qwen3"} | {config["model_type"] for config in NEWER.values()}
    assert proved == set(FAMILIES)


@pytest.mark.parametrize(
    ("model_type", "lacks", "nearest"),
    [
        ("qwen2_moe", "an expert that all tokens share", "qwen3_moe"),
        ("deepseek_v3", "multi-head latent attention and shared experts", "qwen3_moe"),
        ("qwen3_vl", "its layers", "qwen3"),
        ("mixtral2", "its layers", "mixtral"),
        ("mamba", "state space layers", "llama"),
        ("rwkv", "its layers", "llama"),
        ("mamba2", "state space layers", "llama"),
        ("falcon_h1", "state space layers beside those with attention", "llama"),
        ("glm4", "heads that are rotated in neighbouring pairs, and norms behind attention and MLP", "phi3"),
        ("gpt_neox", "LayerNorm, and layers whose attention and MLP run side by side", "llama"),
        ("nomic_bert", "this encoder's layers", "bert"),
        ("clip", "all but text: it reads pictures or sounds and writes no text", "bert"),
    ],
)
def test_an_unknown_family_is_refused_with_what_is_missing_and_the_nearest_that_works(
    model_type: str, lacks: str, nearest: str, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(TINY_CONFIG | {"model_type": model_type}))
    with pytest.raises(Misconfigured) as refused:
        read_architecture(tmp_path)
    assert f"lacks {lacks}; the nearest architecture that works is {nearest}," in refused.value.message
    assert refused.value.message == unknown_sentence({"model_type": model_type})


@pytest.mark.parametrize(
    ("config", "lacks", "nearest"),
    [
        ({"vision_config": {"a": 1}, "text_config": {"model_type": "qwen2"}}, "the pictures that it reads", "qwen2"),
        ({"audio_config": {"a": 1}, "text_config": {"model_type": "new"}}, "the sounds that it reads", "llama"),
        ({"vision_config": 7, "text_config": [1]}, "the pictures that it reads", "llama"),
        ({"is_encoder_decoder": True}, "a decoder that attends to an encoder", "llama"),
        ({"mamba_d_state": 16}, "state space layers", "llama"),
        ({"kv_lora_rank": 8, "n_routed_experts": 4}, "multi-head latent attention", "qwen3_moe"),
        ({"layer_norm_eps": 1e-5}, "LayerNorm", "llama"),
        ({"layer_norm_eps": None, "num_experts": 4}, "its layers", "qwen3_moe"),
    ],
)
def test_of_a_family_that_is_in_no_table_its_config_says_what_is_missing(
    config: dict[str, object], lacks: str, nearest: str
) -> None:
    said = unknown_sentence({"model_type": "nobody_knows"} | config)
    assert f"lacks {lacks}; the nearest architecture that works is {nearest}, and" in said


@pytest.mark.parametrize("config", [{"_class_name": "UNet2DConditionModel"}, {"model_type": "clip"}])
def test_what_makes_no_text_is_not_offered_to_vllm(config: dict[str, object]) -> None:
    with pytest.raises(Misconfigured, match="no text") as refused:
        family_of(config)
    assert not isinstance(refused.value, UnknownModel)
