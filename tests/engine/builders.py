"""Small engines for tests: schedulers over a few blocks, and a tiny random Llama in a folder."""

import json
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from axon.domain.sampling import Sampling
from axon.engine.batch import Drawn
from axon.engine.config import EngineConfig
from axon.engine.core import EngineCore
from axon.engine.engine import Engine
from axon.engine.native import library
from axon.engine.native.build import NotBuilt
from axon.engine.protocol.messages import Add, Emitted
from axon.engine.schedule.blocks import BlockPool
from axon.engine.schedule.limits.draft_choice import DraftCosts
from axon.engine.schedule.policy import Policy
from axon.engine.schedule.scheduler import Scheduler
from axon.engine.schedule.scoring import MAX_SCORED_TOKENS
from axon.engine.schedule.shelf import Shelf

TINY_CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 272,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "max_position_embeddings": 512,
    "tie_word_embeddings": True,
    "eos_token_id": 257,
}

ENGINE_CONFIG = EngineConfig(
    dtype="float32", threads=1, kv_memory_bytes=2 << 20, block_size=4, max_batch_tokens=96, max_sequences=8
)

FREE_DRAFTS = DraftCosts(
    num_streams=1, step_s=1.0, row_s=1e-9, round_s=1e-9, draft_row_s=1e-9, spend_s=inf, probe_s=inf, most=4
)
"""Costs at which the draft model drafts for every stream that it has caught up with."""


def make_scheduler(
    *,
    blocks: int = 8,
    block_size: int = 4,
    max_sequences: int = 4,
    max_batch_tokens: int = 16,
    max_model_len: int = 1000,
    max_prefill_tokens: int = 0,
    eos_ids: frozenset[int] = frozenset(),
    policy: Policy | None = None,
    version: str = "",
    max_scored_tokens: int = MAX_SCORED_TOKENS,
    shelf: Shelf | None = None,
    max_draft_len: int = 0,
    has_head: bool = False,
) -> Scheduler:
    return Scheduler(
        BlockPool(blocks, block_size),
        max_sequences=max_sequences,
        max_batch_tokens=max_batch_tokens,
        max_model_len=max_model_len,
        max_prefill_tokens=max_prefill_tokens,
        eos_ids=eos_ids,
        policy=policy,
        version=version,
        max_scored_tokens=max_scored_tokens,
        shelf=shelf,
        max_draft_len=max_draft_len,
        has_head=has_head,
    )


def make_add(
    id: str = "a",
    *,
    prompt: list[int] | int = 5,
    output: list[int] | None = None,
    max_tokens: int = 4,
    seed: int = 0,
    choice: int = 0,
    tenant: str = "",
    weight: float = 1.0,
    kv_share: float = 1.0,
    reserved: float = 0.0,
    priority: int = 0,
    deadline: float | None = None,
    interrupted: bool = False,
    session: str = "",
    forget: bool = False,
    adapter: str = "",
    adapter_folder: str = "",
    **sampling: Any,
) -> Add:
    """A prompt given as a number gets that many different ids."""
    prompt_ids = list(range(1, prompt + 1)) if isinstance(prompt, int) else prompt
    return Add(
        id=id,
        prompt_ids=prompt_ids,
        output_ids=output or [],
        sampling=Sampling(max_tokens=max_tokens, **({"temperature": 0.0} | sampling)),
        seed=seed,
        choice=choice,
        tenant=tenant,
        weight=weight,
        kv_share=kv_share,
        reserved=reserved,
        priority=priority,
        deadline=deadline,
        interrupted=interrupted,
        session=session,
        forget=forget,
        adapter=adapter,
        adapter_folder=adapter_folder,
    )


def make_drawn(*token_ids: int) -> list[Drawn]:
    """What a runner answers when it has drawn these tokens."""
    return [Drawn(token_id) for token_id in token_ids]


def make_tiny_llama(folder: Path, *, seed: int = 7, **changes: Any) -> Path:
    """Writes a random model; equal arguments give equal weights."""
    config = TINY_CONFIG | changes
    random = np.random.default_rng(seed)
    hidden, inner, dim = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    num_heads, num_kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    shapes = {"model.embed_tokens.weight": (config["vocab_size"], hidden), "model.norm.weight": (hidden,)}
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (config["vocab_size"], hidden)
    for index in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{index}"
        shapes |= {
            f"{prefix}.input_layernorm.weight": (hidden,),
            f"{prefix}.post_attention_layernorm.weight": (hidden,),
            f"{prefix}.self_attn.q_proj.weight": (num_heads * dim, hidden),
            f"{prefix}.self_attn.k_proj.weight": (num_kv_heads * dim, hidden),
            f"{prefix}.self_attn.v_proj.weight": (num_kv_heads * dim, hidden),
            f"{prefix}.self_attn.o_proj.weight": (hidden, num_heads * dim),
            f"{prefix}.mlp.gate_proj.weight": (inner, hidden),
            f"{prefix}.mlp.up_proj.weight": (inner, hidden),
            f"{prefix}.mlp.down_proj.weight": (hidden, inner),
        }
        if config["model_type"] == "qwen2":
            shapes |= {f"{prefix}.self_attn.q_proj.bias": (num_heads * dim,)}
            shapes |= {f"{prefix}.self_attn.{name}_proj.bias": (num_kv_heads * dim,) for name in "kv"}
        if config["model_type"] == "qwen3":
            shapes |= {f"{prefix}.self_attn.{name}_norm.weight": (dim,) for name in "qk"}
    tensors = {name: random.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    return folder


RELATIVES: dict[str, dict[str, Any]] = {
    "smollm2": {"rope_theta": 100000.0},
    "llama3": {
        "rope_theta": 500000.0,
        "rope_scaling": {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 256,
        },
        "tie_word_embeddings": False,
    },
    "mistral": {"model_type": "mistral", "tie_word_embeddings": False, "sliding_window": None, "head_dim": 12},
    "qwen2": {"model_type": "qwen2", "rope_theta": 1000000.0, "rms_norm_eps": 1e-6},
    "qwen3": {"model_type": "qwen3", "rope_theta": 1000000.0, "rms_norm_eps": 1e-6, "head_dim": 16},
}
"""How the config of each architecture differs from the tiny Llama's; in two, heads are not hidden size / heads wide."""


def run_to_end(engine: EngineCore, adds: list[Add]) -> dict[str, list[int]]:
    """Adds all at once and steps until nothing is left; returns each sequence's new tokens."""
    return {id: [each.token for each in emitted] for id, emitted in run_exactly(engine, adds).items()}


def prompt_logprobs(engine: EngineCore, prompt: list[int]) -> list[float]:
    """The log probability of each token of a prompt but the first."""
    engine.add(make_add("a", prompt=prompt, max_tokens=1, prompt_logprobs=True, ignore_eos=True))
    found: list[float] = []
    while engine.has_work:
        found += [logprob for scored in engine.step().scored for logprob, _, _ in scored.logprobs]
    return found


def run_exactly(engine: EngineCore, adds: list[Add]) -> dict[str, list[Emitted]]:
    """Like ``run_to_end``, with all that is said of each token except whether its prompt was cached."""
    outputs: dict[str, list[Emitted]] = {add.id: [] for add in adds}
    for add in adds:
        engine.add(add)
    for _ in range(5000):
        if not engine.has_work:
            break
        for emitted in engine.step().emitted:
            outputs[emitted.id].append(replace(emitted, cached=0))
    assert not engine.has_work, "the engine does not come to an end"
    engine.check()
    return outputs


def open_engine(folder: Path, config: EngineConfig, **changes: Any) -> Engine:
    """An engine over the folder, which leaves torch's threads to the others of this process."""
    num_threads = torch.get_num_threads()
    try:
        return Engine(replace(config, **changes), folder)
    finally:
        torch.set_num_threads(num_threads)


def require_native() -> None:
    """Without a compiler there is no int8, and tests of it skip."""
    try:
        library.load()
    except NotBuilt as error:
        pytest.skip(f"no native kernels here: {error}")


def with_config(**changes: Any) -> EngineConfig:
    return replace(ENGINE_CONFIG, **changes)
