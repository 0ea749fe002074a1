"""Mixtral, Qwen 3 MoE, Gemma 3, Phi 3 and gpt-oss: tiny random ones, saved by transformers, against transformers."""

import json
import random
import statistics
from pathlib import Path
from typing import Any

import pytest

from axon.engine.backend import choose_dtype
from axon.engine.config import EngineConfig
from axon.engine.engine import Engine
from axon.engine.load.architecture import read_architecture
from axon.engine.load.layout import file_shapes
from axon.engine.load.tensor_files import check_tensors, find_tensors
from axon.engine.protocol.messages import Add
from axon.errors import Misconfigured
from tests import long
from tests.engine.builders import make_add, prompt_logprobs, require_native, run_exactly, run_to_end, with_config
from tests.engine.checkpoints import NEWER, make_checkpoint
from tests.engine.reference import transformers_model

PROMPTS = [[(7 * index + 13 * number) % 250 for index in range(1 + 5 * number)] for number in range(30)]
NUM_TOKENS = 64
RANDOM_PROMPT = random.Random(5).choices(range(250), k=120)


@pytest.fixture(scope="module", params=NEWER)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("newer") / request.param, request.param)


def adds_for(prompts: list[list[int]], **more: Any) -> list[Add]:
    return [
        make_add(str(number), prompt=prompt, ignore_eos=True, **{"max_tokens": NUM_TOKENS, **more})
        for number, prompt in enumerate(prompts)
    ]


def test_greedy_tokens_in_float32_equal_those_of_transformers(folder: Path) -> None:
    prompts = long.some(PROMPTS)
    model = transformers_model.load(folder)
    expected = [transformers_model.answer(model, prompt, NUM_TOKENS) for prompt in prompts]
    assert list(run_to_end(Engine(with_config(), folder), adds_for(prompts)).values()) == expected


def test_every_token_of_a_prompt_is_as_likely_as_transformers_says(folder: Path) -> None:
    """Answers of a tiny model soon go round in a circle; a random prompt asks for what each position sees."""
    expected = transformers_model.prompt_logprobs(transformers_model.load(folder), RANDOM_PROMPT)
    assert prompt_logprobs(Engine(with_config(), folder), RANDOM_PROMPT) == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize(("dtype", "share"), [("bfloat16", 0.02), ("int8", 0.03)])
def test_rounded_numbers_stay_near_to_those_of_float32(folder: Path, dtype: str, share: float) -> None:
    """The median difference of a token's log probability, as a share of their standard deviation: in bfloat16 it was
    0.005 to 0.013, as transformers' own in bfloat16 is, and in int8 0.013 to 0.02. Few tokens of a mixture of experts
    may be far off, where rounding chose another expert."""
    if dtype == "int8":
        require_native()
    expected = transformers_model.prompt_logprobs(transformers_model.load(folder), RANDOM_PROMPT)
    found = prompt_logprobs(Engine(with_config(dtype=dtype, block_size=16), folder), RANDOM_PROMPT)
    gaps = [abs(one - other) for one, other in zip(found, expected, strict=True)]
    assert 0 < statistics.median(gaps) < share * statistics.pstdev(expected)


@pytest.mark.parametrize("name", ["gemma3", "gpt_oss"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_a_window_that_is_one_too_short_or_long_would_be_seen(name: str, dtype: str, tmp_path: Path) -> None:
    """In bfloat16 and int8 too, whose numbers are rounded: they are nearest to those of the right window."""
    if dtype == "int8":
        require_native()
    folder = make_checkpoint(tmp_path / name, name)
    expected = transformers_model.prompt_logprobs(transformers_model.load(folder), RANDOM_PROMPT)
    config = json.loads((folder / "config.json").read_text())
    gaps = {}
    for window in (23, 24, 25):
        (folder / "config.json").write_text(json.dumps(config | {"sliding_window": window}))
        found = prompt_logprobs(Engine(with_config(dtype=dtype, block_size=16), folder), RANDOM_PROMPT)
        gaps[window] = sum(abs(one - other) for one, other in zip(found, expected, strict=True))
    assert gaps[24] < 0.9 * min(gaps[23], gaps[25]), gaps


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_an_answer_in_a_batch_is_bitwise_the_one_alone(folder: Path, dtype: str) -> None:
    if dtype == "int8":
        require_native()
    adds = adds_for(PROMPTS[:12:3], max_tokens=5, logprobs=3)
    engine = Engine(with_config(dtype=dtype, block_size=16), folder)
    together = run_exactly(engine, adds)
    for add in adds:
        assert run_exactly(engine, [add])[add.id] == together[add.id]


def test_a_checkpoint_has_the_tensors_that_its_config_asks_for_and_no_others(folder: Path) -> None:
    architecture = read_architecture(folder)
    check_tensors(folder, architecture)
    assert set(find_tensors(folder)) == set(file_shapes(architecture))


def test_a_gpu_computes_it_in_bfloat16_and_refuses_fp8_in_a_sentence(folder: Path) -> None:
    architecture = read_architecture(folder)
    assert choose_dtype(EngineConfig(device="cuda"), architecture).dtype == "bfloat16"
    with pytest.raises(Misconfigured, match=rf"does not run {architecture.model_type} models yet: compute in bfloat16"):
        choose_dtype(EngineConfig(device="cuda", dtype="fp8"), architecture)


@pytest.mark.parametrize("number", [0, 7, "two"])
def test_more_experts_for_a_token_than_there_are_is_refused(number: object, tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path, "mixtral")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_experts_per_tok": number}))
    with pytest.raises(Misconfigured, match="num_experts_per_tok is"):
        read_architecture(folder)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"attn_logit_softcapping": 50.0}, r"soft caps \(attn_logit_softcapping\)"),
        ({"final_logit_softcapping": 30.0}, r"soft caps \(final_logit_softcapping\)"),
        ({"use_bidirectional_attention": True}, "tokens that see later ones"),
        ({"hidden_activation": "relu"}, "'relu' is not supported"),
        ({"layer_types": ["full_attention"]}, "layer_types has 1 entries for 4 layers"),
    ],
)
def test_a_gemma_that_would_compute_wrongly_is_refused(changes: dict[str, Any], reason: str, tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path, "gemma3")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))
    with pytest.raises(Misconfigured, match=reason):
        read_architecture(folder)


def test_a_gemma_as_it_was_published_has_the_same_windows_and_ropes(tmp_path: Path) -> None:
    """The first files have a pattern and two bases in place of lists and ``rope_parameters``."""
    folder = make_checkpoint(tmp_path, "gemma3")
    config = json.loads((folder / "config.json").read_text())
    old: dict[str, Any] = {"sliding_window_pattern": 2, "rope_theta": 1e6, "rope_local_base_freq": 1e4}
    old["rope_scaling"] = {"rope_type": "linear", "factor": 4.0}
    left = {key: value for key, value in config.items() if key not in ("layer_types", "rope_parameters")}
    del left["tie_word_embeddings"]
    expected = read_architecture(folder)
    (folder / "config.json").write_text(json.dumps(left | old))
    assert read_architecture(folder) == expected
    assert expected.windows == (24, 0, 24, 0)
    assert expected.tied_embedding


def test_a_longrope_model_ends_where_its_long_factors_would_begin(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path, "phi3, longrope")
    assert read_architecture(folder).max_model_len == 256
    config = json.loads((folder / "config.json").read_text())
    config["rope_parameters"]["short_factor"] = [1.0, 2.0]
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(Misconfigured, match="2 factors for 3 frequencies"):
        Engine(with_config(), folder)


@pytest.mark.parametrize("kind", ["yarn", "dynamic", "llama3"])
def test_a_phi_with_another_rope_is_refused_by_its_name(kind: str, tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path, "phi3")
    config = json.loads((folder / "config.json").read_text())
    config["rope_parameters"] |= {"rope_type": kind, "factor": 2.0}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(Misconfigured, match=f"{kind}' .*not supported"):
        read_architecture(folder)
