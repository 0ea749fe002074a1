"""A row is its own: whatever happens around a sequence, its tokens stay the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from axon.engine.engine import Engine
from axon.engine.messages import Add
from tests.engine.builders import RELATIVES, make_add, make_tiny_llama, run_to_end, with_config
from tests.engine.pipeline import Pipeline

GREEDY: dict[str, Any] = {"temperature": 0.0}
SEEDED: dict[str, Any] = {"temperature": 0.9, "top_k": 40, "top_p": 0.95}
PENALISED: dict[str, Any] = {
    "temperature": 0.8,
    "min_p": 0.01,
    "repetition_penalty": 1.2,
    "presence_penalty": 0.4,
    "frequency_penalty": 0.3,
    "logit_bias": ((5, 1.0),),
    "logprobs": 2,
}
SHAPES: dict[str, dict[str, Any]] = {
    "grouped": {},
    "one head each": {"num_attention_heads": 3, "num_key_value_heads": 3},
    "untied, wide": {"tie_word_embeddings": False, "intermediate_size": 600, "hidden_size": 96},
    "qwen2": RELATIVES["qwen2"],
    "qwen3": RELATIVES["qwen3"],
}

CASES = [
    *[("grouped", sampling) for sampling in (GREEDY, PENALISED)],
    ("one head each", SEEDED),
    ("untied, wide", GREEDY),
    ("qwen2", PENALISED),
    ("qwen3", SEEDED),
]

MakeEngine = Callable[..., Engine]


@pytest.fixture(scope="module")
def make_engine(shape: str, tmp_path_factory: pytest.TempPathFactory) -> MakeEngine:
    folder = make_tiny_llama(tmp_path_factory.mktemp("models") / "model", **SHAPES[shape])
    return lambda **changes: Engine(with_config(**changes), folder)


def make_adds(count: int, *, sampling: dict[str, Any], tenant: str = "") -> list[Add]:
    random = np.random.default_rng(count)
    return [
        make_add(
            str(index),
            prompt=random.integers(0, 256, random.integers(1, 140)).tolist(),
            max_tokens=12,
            seed=index,
            tenant=tenant,
            ignore_eos=True,
            **sampling,
        )
        for index in range(count)
    ]


def run_alone(make_engine: MakeEngine, adds: list[Add]) -> dict[str, list[int]]:
    engine = make_engine()
    return {add.id: run_to_end(engine, [add])[add.id] for add in adds}


@pytest.mark.parametrize(("shape", "sampling"), CASES, scope="module")
class TestEquality:
    def test_batched_equals_alone(self, make_engine: MakeEngine, sampling: dict[str, Any]) -> None:
        adds = make_adds(6, sampling=sampling)
        assert run_to_end(make_engine(), adds) == run_alone(make_engine, adds)

    def test_chunked_equals_whole(self, make_engine: MakeEngine, sampling: dict[str, Any]) -> None:
        adds = make_adds(5, sampling=sampling)
        whole = run_to_end(make_engine(max_batch_tokens=2048), adds)
        assert run_to_end(make_engine(max_batch_tokens=13), adds) == whole

    def test_cached_equals_uncached(self, make_engine: MakeEngine, sampling: dict[str, Any]) -> None:
        adds = make_adds(4, sampling=sampling)
        engine = make_engine()
        assert run_to_end(engine, adds) == run_to_end(engine, adds) == run_to_end(make_engine(), adds)

    def test_replayed_equals_undisturbed(self, make_engine: MakeEngine, sampling: dict[str, Any]) -> None:
        [add] = make_adds(1, sampling=sampling)
        engine = make_engine()
        whole = run_to_end(engine, [add])[add.id]
        for num_emitted in (1, 11):
            replay = make_add(
                add.id, prompt=add.prompt_ids, output=whole[:num_emitted], max_tokens=12, ignore_eos=True, **sampling
            )
            assert run_to_end(make_engine(), [replay])[add.id] == whole[num_emitted:]

    def test_parked_and_resumed_equals_undisturbed(self, make_engine: MakeEngine, sampling: dict[str, Any]) -> None:
        adds = [
            make_add(str(index), prompt=[index] * 20, max_tokens=30, seed=index, ignore_eos=True, **sampling)
            for index in range(6)
        ]
        roomy = make_engine()
        block_bytes = with_config().kv_memory_bytes // roomy.ready().num_blocks
        tight = make_engine(kv_memory_bytes=block_bytes * 36)
        outputs = run_to_end(tight, adds)
        assert tight.step().counters.preemptions > 0
        assert outputs == run_to_end(roomy, adds)

    def test_another_block_size_changes_nothing(self, make_engine: MakeEngine, sampling: dict[str, Any]) -> None:
        adds = make_adds(3, sampling=sampling)
        assert run_to_end(make_engine(block_size=16), adds) == run_to_end(make_engine(), adds)

    def test_planned_ahead_equals_step_by_step(self, make_engine: MakeEngine, sampling: dict[str, Any]) -> None:
        adds = make_adds(4, sampling=sampling)
        engine = make_engine(max_batch_tokens=40)
        pipeline = Pipeline(engine._scheduler, 1, engine._runner)
        for add in adds:
            engine.add(add)
        outputs: dict[str, list[int]] = {add.id: [] for add in adds}
        while engine.has_work:
            for emitted in pipeline.step()[1]:
                outputs[emitted.id].append(emitted.token)
        assert outputs == run_to_end(make_engine(), adds)

    def test_four_choices_together_equal_each_alone(self, make_engine: MakeEngine, sampling: dict[str, Any]) -> None:
        adds = [
            make_add(str(choice), prompt=37, choice=choice, max_tokens=10, ignore_eos=True, **sampling)
            for choice in range(4)
        ]
        assert run_to_end(make_engine(), adds) == run_alone(make_engine, adds)


def test_a_seed_or_a_choice_changes_the_tokens(tiny_llama: Path) -> None:
    engine = Engine(with_config(), tiny_llama)
    keys = [(0, 0), (0, 1), (1, 0)]
    adds = [
        make_add(f"{seed}.{choice}", seed=seed, choice=choice, temperature=1.0, max_tokens=12, ignore_eos=True)
        for seed, choice in keys
    ]
    outputs = run_to_end(engine, adds)
    assert len({tuple(tokens) for tokens in outputs.values()}) == 3
