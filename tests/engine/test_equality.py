"""A row is its own: whatever happens around a sequence, its tokens stay the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from axon.engine.engine import Engine
from axon.engine.messages import Add
from tests.engine.builders import make_add, make_tiny_llama, run_to_end, with_config

GREEDY: dict[str, Any] = {"temperature": 0.0}
SEEDED: dict[str, Any] = {"temperature": 0.9, "top_k": 40, "top_p": 0.95}
SHAPES: dict[str, dict[str, Any]] = {
    "grouped": {},
    "one head each": {"num_attention_heads": 3, "num_key_value_heads": 3},
    "untied, wide": {"tie_word_embeddings": False, "intermediate_size": 600, "hidden_size": 96},
}

MakeEngine = Callable[..., Engine]


@pytest.fixture(scope="module", params=SHAPES)
def make_engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> MakeEngine:
    folder = make_tiny_llama(tmp_path_factory.mktemp("models") / "model", **SHAPES[request.param])
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


@pytest.mark.parametrize("sampling", [GREEDY, SEEDED], ids=["greedy", "seeded"])
class TestEquality:
    def test_batched_equals_alone(self, make_engine: MakeEngine, sampling: dict[str, Any]) -> None:
        adds = make_adds(8, sampling=sampling)
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


def test_a_seed_or_a_choice_changes_the_tokens(tiny_llama: Path) -> None:
    engine = Engine(with_config(), tiny_llama)
    keys = [(0, 0), (0, 1), (1, 0)]
    adds = [
        make_add(f"{seed}.{choice}", seed=seed, choice=choice, temperature=1.0, max_tokens=12, ignore_eos=True)
        for seed, choice in keys
    ]
    outputs = run_to_end(engine, adds)
    assert len({tuple(tokens) for tokens in outputs.values()}) == 3
