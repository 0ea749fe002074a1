"""The engine over a model folder: loads it and sizes its memory. Token ids in, token ids out."""

from pathlib import Path

import torch

from axon.engine.architecture import read_architecture
from axon.engine.attention import Attention
from axon.engine.blocks import BlockPool
from axon.engine.config import EngineConfig
from axon.engine.core import EngineCore
from axon.engine.kv import KVMemory, block_bytes
from axon.engine.models.llama import Llama
from axon.engine.pace import Pace
from axon.engine.policy import make_policy
from axon.engine.runner import ModelRunner
from axon.engine.scheduler import Scheduler
from axon.engine.weights import Weights
from axon.errors import Misconfigured

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class Engine(EngineCore):
    """Runs a Llama on this machine's cores."""

    @torch.inference_mode()
    def __init__(self, config: EngineConfig, model_dir: Path) -> None:
        torch.set_num_threads(config.threads or torch.get_num_threads())
        architecture = read_architecture(model_dir)
        dtype = _DTYPES[config.dtype]
        num_blocks = config.kv_memory_bytes // block_bytes(architecture, config.block_size, dtype)
        if num_blocks < 1:
            raise Misconfigured(f"kv_memory_bytes = {config.kv_memory_bytes} holds not even one block")
        with Weights(model_dir, dtype) as weights:
            model = Llama(architecture, weights)
        attention = Attention(architecture, KVMemory(architecture, num_blocks, config.block_size, dtype))
        scheduler = Scheduler(
            BlockPool(num_blocks, config.block_size),
            max_sequences=config.max_sequences,
            max_batch_tokens=config.max_batch_tokens,
            max_prefill_tokens=config.max_prefill_tokens,
            max_model_len=min(config.max_model_len or architecture.max_model_len, architecture.max_model_len),
            eos_ids=architecture.eos_ids,
            policy=make_policy(config.policy),
            version=f"{model_dir.resolve()} torch-{config.dtype}",
        )
        pace = Pace(max_prefill_tokens=config.max_prefill_tokens, max_slowdown=config.max_slowdown)
        super().__init__(scheduler, ModelRunner(model, attention), kernel=f"torch-{config.dtype}", pace=pace)
