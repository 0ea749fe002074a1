"""LoRA adapters in an engine: the merged model's tokens, each row its own, nothing shared in the prefix cache."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from axon.domain.failure import Failure
from axon.engine import engine as engine_module
from axon.engine.backend import open_backend
from axon.engine.config import EngineConfig
from axon.engine.core import NO_ADAPTERS, EngineCore
from axon.engine.protocol.messages import Add, Refused
from tests.engine.adapter_files import ALL, adapted, make_adapter, merge
from tests.engine.builders import (
    RELATIVES,
    make_tiny_llama,
    open_engine,
    require_native,
    run_exactly,
    run_to_end,
    with_config,
)

CONFIGS = {
    "float32": with_config(),
    "bfloat16": with_config(dtype="bfloat16"),
    "int8": with_config(dtype="int8", block_size=16),
}
SAMPLINGS: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0.0, "logprobs": 3},
    "seeded": {"temperature": 0.9, "top_k": 40, "repetition_penalty": 1.1, "logprobs": 1},
}
Adapters = list[Path]


@pytest.fixture(scope="module")
def folders(tiny_llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Adapters:
    """Adapters of several ranks and targets; the last ranks fill no vector exactly."""
    root = tmp_path_factory.mktemp("adapters")
    return [
        make_adapter(root / "all", tiny_llama, seed=1),
        make_adapter(root / "queries", tiny_llama, seed=2, rank=8, targets=("q_proj", "v_proj")),
        make_adapter(root / "mlp", tiny_llama, seed=3, rank=3, targets=("gate_proj", "down_proj"), use_rslora=True),
        make_adapter(root / "wide", tiny_llama, seed=4, rank=17, targets=("k_proj", "o_proj", "up_proj")),
    ]


@pytest.fixture(params=["float32", "int8"])
def config(request: pytest.FixtureRequest) -> EngineConfig:
    if request.param == "int8":
        require_native()
    return CONFIGS[request.param]


def prompts(count: int, seed: int = 0) -> list[list[int]]:
    random = np.random.default_rng(seed)
    return [random.integers(0, 250, random.integers(2, 60)).tolist() for _ in range(count)]


def refusal_of(engine: EngineCore, add: Add) -> Refused:
    engine.add(add)
    refused: list[Refused] = []
    while engine.has_work:
        refused += engine.step().refused
    [refusal] = refused
    return refusal


@pytest.mark.parametrize("shape", ["llama", "qwen2", "qwen3"])
def test_an_adapter_gives_the_merged_models_tokens_in_float32(shape: str, tmp_path: Path) -> None:
    base = make_tiny_llama(tmp_path / "base", **RELATIVES.get(shape, {}))
    adapter = make_adapter(tmp_path / "adapter", base, seed=5, use_rslora=shape == "qwen2")
    plain, merged = (
        open_engine(each, CONFIGS["float32"]) for each in (base, merge(base, adapter, tmp_path / "merged"))
    )
    texts, max_tokens = prompts(30 if shape == "llama" else 3), 32 if shape == "llama" else 12
    alone = [adapted(str(index), None, prompt=text, max_tokens=max_tokens) for index, text in enumerate(texts)]
    asked = [adapted(str(index), adapter, prompt=text, max_tokens=max_tokens) for index, text in enumerate(texts)]
    expected = run_to_end(merged, alone)
    assert run_to_end(plain, asked) == expected
    assert run_to_end(plain, alone) != expected, "the adapter changes nothing, so this test would show nothing"


def test_an_adapter_in_int8_stays_near_the_merged_model(tiny_llama: Path, folders: Adapters, tmp_path: Path) -> None:
    require_native()
    merged = open_engine(merge(tiny_llama, folders[0], tmp_path / "merged"), CONFIGS["float32"])
    engine = open_engine(tiny_llama, CONFIGS["int8"])
    fields: dict[str, Any] = {"max_tokens": 1, "logprobs": 20}
    texts = prompts(24)
    near = run_exactly(engine, [adapted(str(i), folders[0], prompt=text, **fields) for i, text in enumerate(texts)])
    exact = run_exactly(merged, [adapted(str(i), None, prompt=text, **fields) for i, text in enumerate(texts)])
    plain = run_exactly(engine, [adapted(str(i), None, prompt=text, **fields) for i, text in enumerate(texts)])

    def agreement(tokens: dict[str, list[Any]]) -> int:
        return sum(tokens[id][0].token == exact[id][0].token for id in exact)

    assert agreement(near) > 2 * agreement(plain)
    assert agreement(near) >= 18


@pytest.mark.parametrize(
    ("dtype", "sampling"), [("float32", "seeded"), ("bfloat16", "greedy"), ("int8", "greedy"), ("int8", "seeded")]
)
def test_a_batch_of_several_adapters_and_none_equals_each_alone(
    dtype: str, tiny_llama: Path, folders: Adapters, sampling: str
) -> None:
    if dtype == "int8":
        require_native()
    config, asked = CONFIGS[dtype], [None, *folders, None, folders[0]]
    adds = [
        adapted(str(index), folder, prompt=text, max_tokens=10, seed=index, **SAMPLINGS[sampling])
        for index, (folder, text) in enumerate(zip(asked, prompts(len(asked), seed=3), strict=True))
    ]
    together = run_exactly(open_engine(tiny_llama, config), adds)
    alone = open_engine(tiny_llama, config)
    assert together == {add.id: run_exactly(alone, [add])[add.id] for add in adds}
    chunked = open_engine(tiny_llama, config, max_batch_tokens=13, adapter_slots=1)
    assert run_exactly(chunked, adds) == together


@pytest.mark.parametrize("shape", [{"head_dim": 64, "hidden_size": 128, "num_attention_heads": 4}, RELATIVES["qwen2"]])
def test_the_number_of_threads_changes_nothing_in_int8(shape: dict[str, Any], tmp_path: Path) -> None:
    require_native()
    base = make_tiny_llama(tmp_path / "base", **shape)
    adapters = [make_adapter(tmp_path / f"rank-{rank}", base, seed=rank, rank=rank) for rank in (2, 16, 33)]
    adds = [
        adapted(str(index), [None, *adapters][index % 4], prompt=index * 9 + 3, max_tokens=8, logprobs=2)
        for index in range(7)
    ]
    one, three = (open_engine(base, CONFIGS["int8"], threads=threads) for threads in (1, 3))
    expected = run_exactly(one, adds)
    assert run_exactly(three, adds) == expected
    assert {add.id: run_exactly(three, [add])[add.id] for add in adds} == expected


def test_one_text_under_several_adapters_shares_no_cached_block(
    config: EngineConfig, tiny_llama: Path, folders: Adapters
) -> None:
    engine, text = open_engine(tiny_llama, config), list(range(1, 81))
    cached: dict[str, list[int]] = {}
    for round_ in range(2):
        for folder in (None, *folders):
            engine.add(adapted(f"{folder and folder.name}", folder, prompt=text, max_tokens=2))
            while engine.has_work:
                for emitted in engine.step().emitted:
                    if emitted.cached or emitted.finish is None:
                        cached.setdefault(f"{round_}", []).append(emitted.cached)
    assert cached["0"] == [0] * 5
    assert all(each >= 64 for each in cached["1"])


def test_a_row_without_an_adapter_is_what_it_was(config: EngineConfig, tiny_llama: Path, folders: Adapters) -> None:
    add = adapted("plain", None, prompt=30, max_tokens=12, logprobs=2)
    without = run_exactly(open_engine(tiny_llama, config, adapter_slots=0), [add])["plain"]
    others = [adapted(str(index), folder, prompt=index + 7, max_tokens=9) for index, folder in enumerate(folders)]
    assert run_exactly(open_engine(tiny_llama, config), [add, *others])["plain"] == without


def test_parked_replayed_and_drafted_sequences_keep_their_adapter(
    config: EngineConfig, tiny_llama: Path, folders: Adapters
) -> None:
    roomy = open_engine(tiny_llama, config, speculate=False)
    adds = [adapted(str(i), folders[i % 4], prompt=[i + 1] * 20, max_tokens=30, seed=i) for i in range(6)]
    expected = run_exactly(roomy, adds)
    block_bytes = config.kv_memory_bytes // roomy.ready().num_blocks
    tight = open_engine(tiny_llama, config, kv_memory_bytes=block_bytes * (144 // config.block_size))
    run_to_end(tight, [adapted(str(i), folders[i], max_tokens=1) for i in range(4)])  # so that all begin at once
    assert run_exactly(tight, adds) == expected
    assert tight.step().counters.preemptions > 0
    for num_emitted in (1, 13):
        tokens = [each.token for each in expected["1"][:num_emitted]]
        replay = adapted("1", folders[1], prompt=[2] * 20, output=tokens, max_tokens=30, seed=1)
        assert run_exactly(open_engine(tiny_llama, config), [replay])["1"] == expected["1"][num_emitted:]


def test_adapters_are_loaded_and_dropped_under_traffic(
    config: EngineConfig, tiny_llama: Path, folders: Adapters
) -> None:
    engine = open_engine(tiny_llama, config, adapter_slots=2, max_sequences=4)
    adds = [
        adapted(str(i), folders[i * 3 % 4] if i % 5 else None, prompt=[i + 1] * 9, max_tokens=6 + i % 3)
        for i in range(40)
    ]
    outputs = run_exactly(engine, adds)
    assert [len(outputs[add.id]) for add in adds] == [add.sampling.max_tokens for add in adds]
    adapters = engine._adapters
    assert adapters is not None
    assert adapters.num_resident <= 2
    assert adapters.num_dropped >= 2


OPTIONS: dict[str, Any] = {
    "rank_pattern": {"q_proj": 2},
    "alpha_pattern": {"q_proj": 2},
    "fan_in_fan_out": True,
    "layer_replication": [[0, 1]],
    "target_parameters": ["experts.down_proj"],
    "alora_invocation_tokens": [1, 2],
    "use_qalora": True,
}
"""Options that give an adapter's matrices another meaning."""
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "dora": ({"use_dora": True}, "DoRA"),
    "bias": ({"bias": "all"}, "bias"),
    "whole modules": ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
    "another kind": ({"peft_type": "IA3"}, "'IA3' is not supported"),
    "another target": ({"target_modules": ["q_proj", "embed_tokens"]}, "targets embed_tokens"),
    "other weights": ({"init_lora_weights": "pissa_niter_4"}, "pissa"),
    "another rank": ({"r": 5}, "r = 5, but there are matrices of rank 4"),
    "no rank": ({"r": 0}, "r must be"),
    "no scale": ({"lora_alpha": "much"}, "lora_alpha must be a number"),
    "a huge scale": ({"lora_alpha": 10**400}, "lora_alpha must be a number up to 1,000,000"),
    "no number": ({"lora_alpha": float("nan")}, "lora_alpha must be a number"),
    "a huge rank": ({"r": 513}, "from 1 to 512"),
    "biases of its own": ({"lora_bias": True}, "biases"),
    "tokens": ({"trainable_token_indices": [1]}, "trainable_token_indices"),
    "LoRA-GA": ({"init_lora_weights": "lora_ga"}, "lora_ga"),
    **{name: ({name: value}, f"{name} is not supported") for name, value in OPTIONS.items()},
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_supported_is_refused_in_a_sentence(name: str, tiny_llama: Path, tmp_path: Path) -> None:
    changes, words = REFUSED[name]
    folder = make_adapter(tmp_path / "adapter", tiny_llama, **changes)
    refusal = refusal_of(open_engine(tiny_llama, CONFIGS["float32"]), adapted("a", folder))
    assert refusal.code == Failure.ADAPTER_UNUSABLE
    assert words in refusal.message
    assert str(tmp_path) not in refusal.message, "clients are told no path of the server's"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 3e38])
def test_numbers_that_no_product_holds_are_refused(number: float, tiny_llama: Path, tmp_path: Path) -> None:
    folder = make_adapter(tmp_path / "adapter", tiny_llama)
    tensors = load_file(folder / "adapter_model.safetensors")
    next(iter(tensors.values()))[0, 0] = number
    save_file(tensors, folder / "adapter_model.safetensors")
    refusal = refusal_of(open_engine(tiny_llama, CONFIGS["float32"]), adapted("a", folder))
    assert "not finite, or too large" in refusal.message


@pytest.mark.parametrize("name", ["model.norm.weight", f"model.layers.{'9' * 5000}.self_attn.q_proj.lora_A.weight"])
def test_tensors_of_something_else_are_refused(name: str, tiny_llama: Path, tmp_path: Path) -> None:
    folder = make_adapter(tmp_path / "adapter", tiny_llama)
    tensors = load_file(folder / "adapter_model.safetensors")
    save_file(
        {**tensors, f"base_model.model.{name}": next(iter(tensors.values()))}, folder / "adapter_model.safetensors"
    )
    refusal = refusal_of(open_engine(tiny_llama, CONFIGS["float32"]), adapted("a", folder))
    assert "is none of a LoRA" in refusal.message


def test_an_adapter_of_another_base_is_refused_and_the_engine_goes_on(tiny_llama: Path, tmp_path: Path) -> None:
    other = make_tiny_llama(tmp_path / "other", hidden_size=64)
    deeper = make_tiny_llama(tmp_path / "deeper", num_hidden_layers=4)
    engine = open_engine(tiny_llama, CONFIGS["float32"])
    for base in (other, deeper):
        folder = make_adapter(tmp_path / f"of-{base.name}", base)
        assert "of another base model" in refusal_of(engine, adapted("a", folder)).message
    broken = make_adapter(tmp_path / "broken", tiny_llama)
    weights = broken / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    assert "cut short" in refusal_of(engine, adapted("b", broken)).message
    assert "has no adapter_config.json" in refusal_of(engine, adapted("c", tmp_path / "nowhere")).message
    assert len(run_to_end(engine, [adapted("d", None, max_tokens=5)])["d"]) == 5


def test_what_was_read_stays_when_its_files_are_overwritten(
    config: EngineConfig, tiny_llama: Path, tmp_path: Path
) -> None:
    engine = open_engine(tiny_llama, config)
    for seed, targets in enumerate((ALL, ("o_proj",), ("down_proj",))):
        folder = make_adapter(tmp_path / f"written-{seed}", tiny_llama, seed=seed, targets=targets)
        before = run_exactly(engine, [adapted("a", folder, prompt=20, max_tokens=8, logprobs=2)])
        weights = folder / "adapter_model.safetensors"
        with weights.open("r+b") as file:  # in place, where a mapping would see it
            file.seek(-2000, 2)
            file.write(bytes(2000))
        assert run_exactly(engine, [adapted("a", folder, prompt=20, max_tokens=8, logprobs=2)]) == before


def test_a_disk_that_cannot_be_read_is_not_the_adapters_fault(
    tiny_llama: Path, folders: Adapters, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*of: Any) -> None:
        raise OSError(5, "Input/output error", "/secret/place")

    engine = open_engine(tiny_llama, CONFIGS["float32"])
    monkeypatch.setattr("axon.engine.load.adapter.read_array", fail)
    refusal = refusal_of(engine, adapted("a", folders[0]))
    assert refusal.code == Failure.ADAPTER_UNAVAILABLE
    assert "/secret" not in refusal.message


def test_an_adapter_that_is_larger_than_all_their_memory_is_refused(tiny_llama: Path, folders: Adapters) -> None:
    engine = open_engine(tiny_llama, CONFIGS["float32"], adapter_memory_bytes=1000)
    assert "engine.adapter_memory_bytes is 1000" in refusal_of(engine, adapted("a", folders[0])).message


def test_an_engine_without_adapters_says_so(tiny_llama: Path, folders: Adapters) -> None:
    engine = open_engine(tiny_llama, CONFIGS["float32"], adapter_slots=0)
    assert "runs no LoRA adapters" in refusal_of(engine, adapted("a", folders[0])).message


def test_a_backend_that_computes_no_adapters_as_on_a_gpu_refuses_them(
    tiny_llama: Path, folders: Adapters, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = lambda *options, **named: replace(open_backend(*options, **named), adapters=None)  # noqa: E731
    monkeypatch.setattr(engine_module, "open_backend", without)
    refusal = refusal_of(open_engine(tiny_llama, CONFIGS["float32"]), adapted("a", folders[0]))
    assert (refusal.code, refusal.message) == (Failure.ADAPTER_UNUSABLE, NO_ADAPTERS)


def test_every_target_alone_changes_the_answer(tiny_llama: Path, tmp_path: Path) -> None:
    engine = open_engine(tiny_llama, CONFIGS["float32"])
    fields: dict[str, Any] = {"prompt": 20, "max_tokens": 12}
    plain = run_to_end(engine, [adapted("a", None, **fields)])["a"]
    for target in ALL:
        folder = make_adapter(tmp_path / target, tiny_llama, targets=(target,), size=0.5)
        merged = open_engine(merge(tiny_llama, folder, tmp_path / f"{target}-merged"), CONFIGS["float32"])
        tokens = run_to_end(engine, [adapted("a", folder, **fields)])["a"]
        assert tokens == run_to_end(merged, [adapted("a", None, **fields)])["a"]
        assert tokens != plain, target
