"""The table of families: what the docs say of it, and what is said of a family that is not in it."""

import json
from pathlib import Path

import pytest

from axon.engine.load.architecture import read_architecture
from axon.engine.load.family import FAMILIES, unknown_sentence
from axon.errors import Misconfigured
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
        ("gpt_oss", "attention sinks and experts in MXFP4", "qwen3_moe"),
        ("deepseek_v3", "multi-head latent attention and shared experts", "qwen3_moe"),
        ("qwen3_vl", "its layers", "qwen3"),
        ("mixtral2", "its layers", "mixtral"),
        ("mamba", "state space layers", "llama"),
        ("rwkv", "its layers", "llama"),
        (None, "its layers", "llama"),
    ],
)
def test_an_unknown_family_is_refused_with_what_is_missing_and_the_nearest_that_works(
    model_type: str | None, lacks: str, nearest: str, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(TINY_CONFIG | {"model_type": model_type}))
    with pytest.raises(Misconfigured) as refused:
        read_architecture(tmp_path)
    assert f"lacks {lacks}; the nearest architecture that works is {nearest}," in refused.value.message
    assert refused.value.message == unknown_sentence(model_type)
