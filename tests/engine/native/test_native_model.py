"""The native kernels compute the model: close to float32, whatever its shape; and they rest when idle."""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from axon.engine.batch import Batch, Span
from axon.engine.load.architecture import read_architecture
from axon.engine.load.arranged import arranged
from axon.engine.load.weights import Weights
from axon.engine.native import library
from axon.engine.native.model import block_bytes
from axon.engine.native.runner import NativeRunner
from axon.engine.pytorch.attention import Attention
from axon.engine.pytorch.kv_memory import KVMemory
from axon.engine.pytorch.llama import Llama
from axon.engine.pytorch.runner import ModelRunner
from tests.engine.builders import make_tiny_llama
from tests.engine.checkpoints import NEWER, make_checkpoint
from tests.engine.native.builders import MAX_TOKENS, Tiny, make_span, make_tokens

SHAPES: list[dict[str, Any]] = [
    {},
    {"head_dim": 24, "num_attention_heads": 4, "num_key_value_heads": 4},
    {"head_dim": 32, "num_attention_heads": 8, "num_key_value_heads": 1, "hidden_size": 96},
    {"head_dim": 16, "tie_word_embeddings": False, "vocab_size": 300, "intermediate_size": 64},
    {"model_type": "qwen2", "head_dim": 16},
    {"model_type": "qwen3", "head_dim": 16},
    {
        "head_dim": 16,
        "rope_scaling": {"rope_type": "llama3", "factor": 4.0, "original_max_position_embeddings": 16},
        "rope_theta": 500.0,
    },
]


@torch.inference_mode()
def float32_likeliest(folder: Path, tokens: list[int], ends: Iterable[int] = ()) -> list[int]:
    """By decoding every prefix, or those that end with these tokens, with the float32 runner."""
    architecture = read_architecture(folder)
    with Weights(folder, torch.float32) as weights:
        model = Llama(architecture, arranged(weights, architecture))
    runner = ModelRunner(model, Attention(architecture, KVMemory(architecture, 32, 16, torch.float32)))
    return [runner.run(Batch((make_prefix(tokens[: end + 1]),)))[0].token for end in ends or range(len(tokens))]


def make_prefix(tokens: list[int]) -> Span:
    span = make_span(0, 0, tokens)
    return Span(id="a", first=0, token_ids=span.token_ids, block_ids=tuple(range(32)), draw=span.draw)


@pytest.mark.parametrize("changes", SHAPES, ids=str)
def test_it_agrees_with_float32_on_any_shape(tmp_path: Path, changes: dict[str, Any]) -> None:
    assert agreeing_with_float32(make_tiny_llama(tmp_path / "model", **changes)) > 0.7


@pytest.mark.parametrize("name", NEWER)
def test_it_agrees_with_float32_on_the_newer_families(tmp_path: Path, name: str) -> None:
    assert agreeing_with_float32(make_checkpoint(tmp_path / "model", name)) > 0.7


def agreeing_with_float32(folder: Path) -> float:
    """The part of 48 tokens on which int8 and float32 agree: random weights have close calls, but chance is 1/272."""
    tokens = make_tokens(3, 48)
    tiny = Tiny(folder)
    ours = tiny.logits((0, 0, tokens))[0].argmax(axis=1).tolist()
    tiny.model.close()
    return float(np.mean(np.array(ours) == np.array(float32_likeliest(folder, tokens))))


@pytest.mark.parametrize("window", [0, 40, 270])
def test_it_agrees_with_float32_on_a_past_of_several_parts(folder: Path, window: int, tmp_path: Path) -> None:
    if window:
        folder = make_checkpoint(tmp_path / "model", "gemma3", sliding_window=window)
    tokens = make_tokens(3, 400)
    tiny = Tiny(folder, threads=2, num_blocks=25)
    ours = tiny.logits((0, 0, tokens))[0].argmax(axis=1).tolist()
    tiny.model.close()
    ends = range(240, 400, 5)
    theirs = float32_likeliest(folder, tokens, ends)
    agreeing = np.mean(np.array([ours[end] for end in ends]) == np.array(theirs))
    assert agreeing > 0.7, "random weights have close calls, but chance is 1 in 270"


def test_greedy_rows_without_logits_equal_those_with(folder: Path) -> None:
    tiny = Tiny(folder, threads=2)
    runner = NativeRunner(tiny.model, tiny.architecture)
    texts = [make_tokens(seed, 9) for seed in range(4)]
    greedy = runner.run(Batch(tuple(make_span(index, 0, text) for index, text in enumerate(texts))))
    asked = runner.run(Batch(tuple(make_span(index, 0, text, logprobs=0) for index, text in enumerate(texts))))
    assert [drawn.token for drawn in greedy] == [drawn.token for drawn in asked]
    assert all(drawn.logprob is not None for drawn in asked)
    tiny.model.close()


def test_greedy_and_sampled_rows_of_one_batch_are_each_what_they_are_alone(folder: Path) -> None:
    tiny = Tiny(folder, threads=2)
    runner = NativeRunner(tiny.model, tiny.architecture)
    spans = [
        make_span(index, 0, make_tokens(index, 9), temperature=index % 3 / 2, logprobs=(None, 2)[index % 2])
        for index in range(7)
    ]
    alone = [runner.run(Batch((span,)))[0] for span in spans]
    assert runner.run(Batch(tuple(spans))) == alone
    tiny.model.close()


def test_a_span_without_a_draw_gives_no_token(folder: Path) -> None:
    tiny = Tiny(folder)
    runner = NativeRunner(tiny.model, tiny.architecture)
    assert runner.run(Batch((make_span(0, 0, make_tokens(0, 5), draw=None),))) == []
    both = runner.run(Batch((make_span(0, 5, [3], draw=None), make_span(1, 0, [4, 5]))))
    assert len(both) == 1
    tiny.model.close()


def test_the_last_position_of_the_context_can_be_computed(folder: Path) -> None:
    tiny = Tiny(folder)
    assert np.isfinite(tiny.logits((0, 0, make_tokens(0, MAX_TOKENS)))[0]).all()
    tiny.model.close()


def test_idle_threads_use_no_processor_time(folder: Path) -> None:
    tiny = Tiny(folder, threads=3)
    tiny.logits((0, 0, [1, 2, 3]))
    time.sleep(0.05)  # what follows measures a rest, so there must be one
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.03
    tiny.model.close()


def test_a_block_takes_the_memory_it_is_said_to_take(folder: Path) -> None:
    tiny = Tiny(folder)
    assert library.load().axon_block_bytes(tiny.model._handle) == block_bytes(tiny.architecture)
    tiny.model.close()


def test_the_kernel_id_names_group_and_instruction_set() -> None:
    assert library.kernel_id().startswith(f"int8-g{library.load().axon_group_size()}-")
    assert library.kernel_id() == library.kernel_id()
