"""Llama 3, Mistral, Qwen 2.5 and Qwen 3: tiny random ones answer as Hugging Face transformers has them answer."""

import json
from pathlib import Path
from typing import Any

import pytest

from axon.engine.architecture import read_architecture
from axon.engine.engine import Engine
from axon.errors import Misconfigured
from tests.engine.builders import RELATIVES, TINY_CONFIG, make_add, make_tiny_llama, run_to_end, with_config
from tests.engine.reference.relatives import NUM_TOKENS, PROMPTS

ANSWERS = json.loads((Path(__file__).parent / "reference" / "relatives.json").read_text())["answers"]


@pytest.mark.parametrize("name", RELATIVES)
def test_greedy_tokens_equal_those_of_transformers(name: str, tmp_path: Path) -> None:
    engine = Engine(with_config(), make_tiny_llama(tmp_path, **RELATIVES[name]))
    adds = [
        make_add(str(index), prompt=prompt, max_tokens=NUM_TOKENS, ignore_eos=True)
        for index, prompt in enumerate(PROMPTS)
    ]
    assert list(run_to_end(engine, adds).values()) == ANSWERS[name]


@pytest.mark.parametrize(
    ("changes", "length"),
    [
        ({"model_type": "mistral", "sliding_window": 100}, 100),
        ({"model_type": "mistral", "sliding_window": None}, 512),
        ({"model_type": "qwen2", "sliding_window": 100, "use_sliding_window": False}, 512),
        ({"model_type": "qwen2", "sliding_window": 100, "use_sliding_window": True}, 100),
    ],
)
def test_a_model_with_a_sliding_window_runs_within_it(changes: dict[str, Any], length: int, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(TINY_CONFIG | changes))
    assert read_architecture(tmp_path).max_model_len == length


def test_a_missing_bias_is_named(tmp_path: Path) -> None:
    folder = make_tiny_llama(tmp_path)
    (folder / "config.json").write_text(json.dumps(TINY_CONFIG | {"model_type": "qwen2"}))
    with pytest.raises(Misconfigured, match=r"q_proj\.bias"):
        Engine(with_config(), folder)
