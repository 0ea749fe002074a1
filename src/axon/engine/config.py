"""The engine's section of the settings. Free of torch, so that the command line stays quick."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """One engine process."""

    kind: Literal["axon", "echo"] = "axon"
    """``axon`` runs a model; ``echo`` repeats its prompt without one, for tests of everything above."""
    dtype: Literal["auto", "int8", "float32", "bfloat16"] = "auto"
    """Arithmetic of the model. ``auto`` is ``int8`` where its native kernels are shipped or can be built (a C++
    compiler is needed once), and ``float32`` elsewhere; ``int8`` refuses to start there."""
    threads: int = 0
    """CPU threads of a step; 0 takes every core."""
    max_sequences: int = 16
    """Sequences that run at once (the worker's slots)."""
    max_batch_tokens: int = 512
    """Token budget of a step, prefill and decode together."""
    max_prefill_tokens: int = 128
    """The most prompt tokens of a step while answers stream."""
    max_slowdown: float = 2.0
    """How much longer a step may take because of a prompt while answers stream; as many of its tokens are taken on."""
    policy: Literal["fair", "first_come"] = "fair"
    """Who is served first: ``fair`` takes the tenant served least by its weight, ``first_come`` the oldest."""
    max_model_len: int = 0
    """Longest prompt + answer; 0 takes the model's own limit."""
    block_size: int = 16
    """Tokens of KV in a block."""
    kv_memory_bytes: int = 1 << 30
    """Memory for KV blocks."""
    echo_step_s: float = 0.0
    """Time the echo engine takes for a step."""
