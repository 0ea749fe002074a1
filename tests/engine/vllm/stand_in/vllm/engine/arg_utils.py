"""Arguments by the names that vLLM knows."""

from dataclasses import dataclass, field
from typing import Any

from vllm.config import StructuredOutputsConfig


@dataclass(kw_only=True)
class EngineArgs:
    model: str
    max_num_seqs: int
    max_model_len: int = 0
    block_size: int = 16
    dtype: str = "auto"
    quantization: str | None = None
    kv_cache_dtype: str = "auto"
    max_num_batched_tokens: int | None = None
    tensor_parallel_size: int = 1
    kv_cache_memory_bytes: int = 0
    gpu_memory_utilization: float = 0.9
    enable_prefix_caching: bool = False
    scheduling_policy: str = "fcfs"
    structured_outputs_config: StructuredOutputsConfig = field(default_factory=StructuredOutputsConfig)
    logprobs_mode: str = ""
    max_logprobs: int = 0
    skip_tokenizer_init: bool = False
    generation_config: str = "auto"
    disable_log_stats: bool = False
    enforce_eager: bool = False
    hf_overrides: dict[str, Any] = field(default_factory=dict)
