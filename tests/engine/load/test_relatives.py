"""SmolLM2, Llama 3, Mistral, Qwen 2.5 and Qwen 3: tiny random ones, in each format, against transformers."""

import json
import random
import shutil
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from axon.engine.engine import Engine
from axon.engine.load.architecture import read_architecture
from axon.engine.load.convert.gguf import convert_gguf
from axon.engine.load.tensor_files import INDEX
from axon.engine.load.weights import Weights
from axon.errors import Misconfigured
from tests.engine.builders import (
    RELATIVES,
    TINY_CONFIG,
    make_add,
    make_tiny_llama,
    prompt_logprobs,
    require_native,
    run_to_end,
    with_config,
)
from tests.engine.load.convert.gguf_files import write_gguf
from tests.engine.reference import transformers_model

PROMPTS = [[(7 * index + 3 * length) % 250 for index in range(length)] for length in (1, 5, 16, 40, 130)]
NUM_TOKENS = 64
RANDOM_PROMPT = random.Random(5).choices(range(250), k=120)


class Relative:
    """A tiny random model of one architecture, and what transformers makes of it."""

    def __init__(self, name: str, folder: Path) -> None:
        self.folder = make_tiny_llama(folder, **RELATIVES[name])
        model = transformers_model.load(self.folder)
        self.answers = [transformers_model.answer(model, prompt, NUM_TOKENS) for prompt in PROMPTS]
        self.logprobs = transformers_model.prompt_logprobs(model, RANDOM_PROMPT)


@pytest.fixture(scope="module", params=RELATIVES)
def relative(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Relative:
    return Relative(request.param, tmp_path_factory.mktemp("relatives") / request.param)


def answers_of(folder: Path) -> list[list[int]]:
    adds = [
        make_add(str(index), prompt=prompt, max_tokens=NUM_TOKENS, ignore_eos=True)
        for index, prompt in enumerate(PROMPTS)
    ]
    return list(run_to_end(Engine(with_config(), folder), adds).values())


def test_greedy_tokens_equal_those_of_transformers(relative: Relative) -> None:
    assert answers_of(relative.folder) == relative.answers


def test_every_token_of_a_prompt_is_as_likely_as_transformers_says(relative: Relative) -> None:
    """Answers of a tiny model soon go round in a circle, with another rope too; a random prompt asks for what each
    position sees."""
    found = prompt_logprobs(Engine(with_config(), relative.folder), RANDOM_PROMPT)
    assert found == pytest.approx(relative.logprobs, abs=2e-3)


@pytest.mark.parametrize(("dtype", "share"), [("bfloat16", 0.02), ("int8", 0.03)])
def test_rounded_numbers_stay_near_to_those_of_float32(relative: Relative, dtype: str, share: float) -> None:
    """The median difference of a token's log probability, as a share of their standard deviation."""
    if dtype == "int8":
        require_native()
    found = prompt_logprobs(Engine(with_config(dtype=dtype, block_size=16), relative.folder), RANDOM_PROMPT)
    gaps = [abs(one - other) for one, other in zip(found, relative.logprobs, strict=True)]
    assert 0 < statistics.median(gaps) < share * statistics.pstdev(relative.logprobs)


def test_the_same_model_as_a_gguf_file_gives_the_same_tokens(relative: Relative, tmp_path: Path) -> None:
    source = write_gguf(tmp_path / "model.gguf", relative.folder)
    convert_gguf(source, tmp_path / "out")
    assert answers_of(tmp_path / "out") == relative.answers


@pytest.mark.parametrize("name", ["smollm2", "qwen2", "qwen3"])
def test_transformers_finds_the_same_tensors_in_the_gguf_files_of_these_tests(name: str, tmp_path: Path) -> None:
    """So the tests write such files as others read them."""
    folder = make_tiny_llama(tmp_path / "folder", **RELATIVES[name])
    found = transformers_model.read_gguf(write_gguf(tmp_path / "model.gguf", folder), folder)
    expected = load_file(folder / "model.safetensors")
    assert found.keys() == expected.keys()
    assert all(np.array_equal(found[tensor], values) for tensor, values in expected.items())


@pytest.mark.parametrize("name", ["llama3", "qwen2"])
def test_shards_with_an_index_are_the_same_model(name: str, tmp_path: Path) -> None:
    whole, sharded = make_tiny_llama(tmp_path / "whole", **RELATIVES[name]), tmp_path / "sharded"
    sharded.mkdir()
    shutil.copy(whole / "config.json", sharded)
    tensors = load_file(whole / "model.safetensors")
    places = {each: f"model-{1 + index % 3:05}-of-00003.safetensors" for index, each in enumerate(sorted(tensors))}
    for shard in set(places.values()):
        save_file({each: tensors[each] for each, place in places.items() if place == shard}, sharded / shard)
    (sharded / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}))
    # What the index does not name is not of this model, as in folders that carry it in two layouts.
    save_file({"model.embed_tokens.weight": tensors["model.norm.weight"]}, sharded / "consolidated.safetensors")
    with Weights(sharded, torch.float32) as weights:
        assert all(np.array_equal(weights.take(each).numpy(), values) for each, values in tensors.items())
    adds = [make_add(prompt=20, max_tokens=8, ignore_eos=True)]
    assert run_to_end(Engine(with_config(), sharded), adds) == run_to_end(Engine(with_config(), whole), adds)


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
