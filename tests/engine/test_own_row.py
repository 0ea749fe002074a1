"""A row is its own: whatever happens around a sequence, its tokens and logprobs stay the same to the last bit.

In float32 and in int8, on tiny models; ``test_default_model.py`` has the same of the default one.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from axon.engine.config import EngineConfig
from axon.engine.engine import Engine
from axon.engine.protocol.messages import Add, Emitted
from axon.engine.schedule.draft import Drafter
from tests.engine.builders import (
    RELATIVES,
    make_add,
    make_tiny_llama,
    open_engine,
    require_native,
    run_exactly,
    run_to_end,
    with_config,
)
from tests.engine.schedule.pipeline import Pipeline

GREEDY: dict[str, Any] = {"temperature": 0.0}
LOGPROBS: dict[str, Any] = {"temperature": 0.0, "logprobs": 5}
SEEDED: dict[str, Any] = {"temperature": 0.9, "top_k": 40, "top_p": 0.95, "logprobs": 0}
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
CONFIGS = {"float32": with_config(), "int8": with_config(dtype="int8", block_size=16)}

FLOAT32 = [
    ("float32", "grouped", LOGPROBS),
    ("float32", "grouped", PENALISED),
    ("float32", "one head each", SEEDED),
    ("float32", "untied, wide", GREEDY),
    ("float32", "qwen2", PENALISED),
    ("float32", "qwen3", SEEDED),
]
INT8 = [
    ("int8", "grouped", GREEDY),
    ("int8", "grouped", PENALISED),
    ("int8", "one head each", LOGPROBS),
    ("int8", "untied, wide", SEEDED),
    ("int8", "qwen2", GREEDY),
    ("int8", "qwen3", SEEDED),
]

MakeEngine = Callable[..., Engine]
Outputs = dict[str, list[Emitted]]


@pytest.fixture(scope="module")
def config(dtype: str) -> EngineConfig:
    if dtype == "int8":
        require_native()
    return CONFIGS[dtype]


@pytest.fixture(scope="module")
def make_engine(config: EngineConfig, shape: str, tmp_path_factory: pytest.TempPathFactory) -> MakeEngine:
    folder = make_tiny_llama(tmp_path_factory.mktemp("models") / "model", **SHAPES[shape])
    return lambda **changes: open_engine(folder, config, **changes)


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


def run_alone(make_engine: MakeEngine, adds: list[Add]) -> Outputs:
    engine = make_engine()
    return {add.id: run_exactly(engine, [add])[add.id] for add in adds}


class Equality:
    """What is asserted in each arithmetic; a short run has one case of each."""

    def test_batched_equals_alone(self, make_engine: MakeEngine, sampling: dict[str, Any]) -> None:
        adds = make_adds(6, sampling=sampling)
        assert run_exactly(make_engine(), adds) == run_alone(make_engine, adds)

    def test_chunked_equals_whole(self, make_engine: MakeEngine, sampling: dict[str, Any]) -> None:
        adds = make_adds(5, sampling=sampling)
        whole = run_exactly(make_engine(max_batch_tokens=2048), adds)
        assert run_exactly(make_engine(max_batch_tokens=13), adds) == whole

    def test_cached_equals_uncached(self, make_engine: MakeEngine, sampling: dict[str, Any]) -> None:
        adds = make_adds(4, sampling=sampling)
        engine = make_engine()
        assert run_exactly(engine, adds) == run_exactly(engine, adds) == run_exactly(make_engine(), adds)

    def test_replayed_equals_undisturbed(self, make_engine: MakeEngine, sampling: dict[str, Any]) -> None:
        [add] = make_adds(1, sampling=sampling)
        engine = make_engine()
        whole = run_exactly(engine, [add])[add.id]
        for num_emitted in (1, 5, 11):
            tokens = [each.token for each in whole[:num_emitted]]
            replay = make_add(add.id, prompt=add.prompt_ids, output=tokens, max_tokens=12, ignore_eos=True, **sampling)
            assert run_exactly(make_engine(), [replay])[add.id] == whole[num_emitted:]

    def test_parked_and_resumed_equals_undisturbed(
        self, make_engine: MakeEngine, config: EngineConfig, sampling: dict[str, Any]
    ) -> None:
        adds = [
            make_add(str(index), prompt=[index] * 20, max_tokens=30, seed=index, ignore_eos=True, **sampling)
            for index in range(6)
        ]
        roomy = make_engine()
        block_bytes = config.kv_memory_bytes // roomy.ready().num_blocks
        tight = make_engine(kv_memory_bytes=block_bytes * (144 // config.block_size))
        outputs = run_exactly(tight, adds)
        assert tight.step().counters.preemptions > 0
        assert outputs == run_exactly(roomy, adds)

    def test_planned_ahead_equals_step_by_step(self, make_engine: MakeEngine, sampling: dict[str, Any]) -> None:
        adds = make_adds(4, sampling=sampling)
        engine = make_engine(max_batch_tokens=40)
        pipeline = Pipeline(engine._scheduler, 1, engine._runner)
        for add in adds:
            engine.add(add)
        outputs: Outputs = {add.id: [] for add in adds}
        while engine.has_work:
            for emitted in pipeline.step()[1]:
                outputs[emitted.id].append(replace(emitted, cached=0))
        assert outputs == run_exactly(make_engine(), adds)

    def test_guessed_ahead_equals_one_by_one(
        self, make_engine: MakeEngine, sampling: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        adds = make_adds(5, sampling=sampling)
        outputs = run_exactly(make_engine(speculate=False), adds)
        answers = [[*add.prompt_ids, *(each.token for each in outputs[add.id])] for add in adds]

        def draft(_drafter: Drafter, token_ids: list[int], *, price: float, most: int, least_match: int) -> list[int]:
            """Right but for the last, and that one not always."""
            [answer] = [each for each in answers if each[: len(token_ids)] == token_ids]
            drafts = answer[len(token_ids) : len(token_ids) + min(most, 4)]
            return [*drafts[:-1], *((token + len(token_ids) % 2) % 256 for token in drafts[-1:])]

        monkeypatch.setattr(Drafter, "draft", draft)
        engine = make_engine(speculate=True)
        monkeypatch.setattr(engine._controller, "draft_price", lambda _outlook: 0.05)
        assert run_exactly(engine, adds) == outputs
        counters = engine.step().counters
        assert 0 < counters.accepted < counters.drafted

    def test_four_choices_together_equal_each_alone(self, make_engine: MakeEngine, sampling: dict[str, Any]) -> None:
        adds = [
            make_add(str(choice), prompt=37, choice=choice, max_tokens=10, ignore_eos=True, **sampling)
            for choice in range(4)
        ]
        assert run_exactly(make_engine(), adds) == run_alone(make_engine, adds)


@pytest.mark.long
@pytest.mark.parametrize(("dtype", "shape", "sampling"), FLOAT32, scope="module", ids=str)
class TestFloat32(Equality):
    pass


@pytest.mark.long
@pytest.mark.parametrize(("dtype", "shape", "sampling"), INT8, scope="module", ids=str)
class TestInt8(Equality):
    pass


def test_another_block_size_changes_nothing(tiny_llama: Path) -> None:
    adds = make_adds(3, sampling=PENALISED)
    small, large = (open_engine(tiny_llama, with_config(), block_size=size) for size in (4, 16))
    assert run_exactly(small, adds) == run_exactly(large, adds)


def test_another_number_of_threads_changes_nothing_in_int8(tiny_llama: Path) -> None:
    require_native()
    adds = make_adds(4, sampling=LOGPROBS)
    one, two = (open_engine(tiny_llama, CONFIGS["int8"], threads=threads) for threads in (1, 2))
    assert run_exactly(one, adds) == run_exactly(two, adds)


def test_a_seed_or_a_choice_changes_the_tokens(tiny_llama: Path) -> None:
    engine = Engine(with_config(), tiny_llama)
    keys = [(0, 0), (0, 1), (1, 0)]
    adds = [
        make_add(f"{seed}.{choice}", seed=seed, choice=choice, temperature=1.0, max_tokens=12, ignore_eos=True)
        for seed, choice in keys
    ]
    outputs = run_to_end(engine, adds)
    assert len({tuple(tokens) for tokens in outputs.values()}) == 3
