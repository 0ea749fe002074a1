"""Log probabilities of prompts on a GPU, in every way that a step is computed, against those of the CPU."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from axon.engine.core import EngineCore
from axon.engine.parallel.group import TorchGroup, make_store
from axon.engine.parallel.partition import Share
from axon.engine.protocol.messages import Add
from tests.engine.builders import make_add

Scores = dict[str, list[tuple[float, int, list[tuple[int, float]]]]]
Open = Callable[..., EngineCore]

WIDE: dict[str, Any] = {"block_size": 64, "max_batch_tokens": 256, "kv_memory_bytes": 1 << 26}
LENGTHS = (1, 2, 17, 64, 65, 130, 200)


def make_adds(*, num_top: int = 3, with_plain: bool = True) -> list[Add]:
    """Prompts that are scored, and between them some that are not."""
    random = np.random.default_rng(3)
    return [
        make_add(
            str(index),
            prompt=random.integers(0, 256, length).tolist(),
            max_tokens=4,
            ignore_eos=True,
            prompt_logprobs=index % 3 != 1 or not with_plain,
            prompt_top=num_top,
            logprobs=2 if index % 2 else None,
        )
        for index, length in enumerate(LENGTHS)
    ]


def scores_of(engine: EngineCore, adds: list[Add]) -> Scores:
    """Runs all at once to the end; the log probabilities of each prompt that asks for them."""
    scores: Scores = {add.id: [] for add in adds if add.sampling.prompt_logprobs}
    tokens: dict[str, int] = {}
    for add in adds:
        engine.add(add)
    while engine.has_work:
        output = engine.step()
        assert not output.refused, output.refused
        for scored in output.scored:
            assert scored.id not in tokens, "a prompt is scored before its answer"
            scores[scored.id] += scored.logprobs
        for emitted in output.emitted:
            tokens[emitted.id] = tokens.get(emitted.id, 0) + 1
    engine.check()
    assert tokens == {add.id: 4 for add in adds}
    for add in adds:
        if add.sampling.prompt_logprobs:
            assert len(scores[add.id]) == len(add.prompt_ids) - 1
    return scores


def assert_close(ours: Scores, theirs: Scores, tolerance: float, why: object) -> None:
    """Log probabilities within the tolerance; of ranks and likely tokens, nearly all equal."""
    assert ours.keys() == theirs.keys()
    pairs = [pair for id in ours for pair in zip(ours[id], theirs[id], strict=True)]
    worst = max(abs(mine[0] - other[0]) for mine, other in pairs)
    assert worst < tolerance, (why, worst)
    same_rank = np.mean([mine[1] == other[1] for mine, other in pairs])
    same_top = np.mean([[id for id, _ in mine[2]] == [id for id, _ in other[2]] for mine, other in pairs])
    print(f"  {why}: {len(pairs)} tokens, largest difference {worst:.2e}, ranks {same_rank:.3f}, top {same_top:.3f}")
    assert min(same_rank, same_top) > 0.98, why


def compare(folder: Path, on_gpu: Open, on_cpu: Open, name: str) -> None:
    """Whole, in chunks, alone, beside a step in flight, cached, and computed in halves."""
    roomy: dict[str, Any] = {"kv_memory_bytes": 1 << 27, "block_size": 16}
    adds = make_adds()
    expected = scores_of(on_cpu(folder, kv_memory_bytes=1 << 27), adds)
    engine = on_gpu(folder, max_batch_tokens=2048, **roomy)
    assert_close(scores_of(engine, adds), expected, 5e-3, (name, "whole"))
    assert_close(scores_of(engine, adds), expected, 5e-3, (name, "again"))
    alone = {id: scores for add in adds for id, scores in scores_of(engine, [add]).items()}
    assert_close(alone, expected, 5e-3, (name, "alone"))
    assert_close(scores_of(on_gpu(folder, max_batch_tokens=13, **roomy), adds), expected, 5e-3, (name, "chunks"))
    assert_close(scores_of(short_of_memory(on_gpu(folder, **roomy)), adds), expected, 5e-3, (name, "halves"))


def compare_dtypes(folder: Path, on_gpu: Open) -> None:
    """bfloat16 rounds logits to three digits; the log probabilities stay near those of float32."""
    adds = make_adds(num_top=0)
    exact, rough = (scores_of(on_gpu(folder, dtype=dtype, **WIDE), adds) for dtype in ("float32", "bfloat16"))
    pairs = [pair for id in exact for pair in zip(rough[id], exact[id], strict=True)]
    usual = float(np.mean([abs(mine[0] - other[0]) for mine, other in pairs]))
    print(f"  bfloat16: mean difference {usual:.4f}")
    assert usual < 0.2, usual


def compare_ranks(folder: Path, on_gpu: Open, open_in: Callable[..., EngineCore]) -> None:
    """A group of one over NCCL, and two ranks on one GPU over Gloo, against one rank."""
    adds = make_adds()
    whole = scores_of(on_gpu(folder, **WIDE), adds)
    group = TorchGroup(Share(0, 1), torch.device("cuda", 0), lambda: make_store("127.0.0.1"), nccl=True)
    try:
        assert_close(scores_of(open_in(group, folder, **WIDE), adds), whole, 5e-3, "NCCL")
    finally:
        group.close()
    pair = on_gpu(folder, tensor_parallel=2, **WIDE)
    try:
        assert_close(scores_of(pair, adds), whole, 5e-3, "two ranks")
    finally:
        pair.close()


def short_of_memory(engine: EngineCore) -> EngineCore:
    """An engine on which no step of more than 20 rows finds memory."""
    runner: Any = engine._runner
    compute = runner._model.chunks

    def fail_when_large(inputs: Any, *rest: Any) -> torch.Tensor:
        if len(inputs["ids"]) > 20:
            raise torch.OutOfMemoryError
        hidden: torch.Tensor = compute(inputs, *rest)
        return hidden

    runner._model.chunks = fail_when_large
    return engine
