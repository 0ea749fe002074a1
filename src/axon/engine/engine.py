"""The engine over a model folder: loads it and sizes its memory. Token ids in, token ids out."""

import logging
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Literal

import torch

from axon.engine.architecture import Architecture, read_architecture
from axon.engine.attention import Attention
from axon.engine.blocks import BlockPool
from axon.engine.config import EngineConfig, for_device
from axon.engine.core import EngineCore, Launcher, Runner
from axon.engine.kv import KVMemory, block_bytes
from axon.engine.models.llama import Llama
from axon.engine.pace import Pace
from axon.engine.policy import make_policy
from axon.engine.runner import ModelRunner
from axon.engine.scheduler import Scheduler
from axon.engine.weights import Weights
from axon.errors import Misconfigured

logger = logging.getLogger(__name__)

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


OpenWeights = Callable[[Path, torch.dtype], AbstractContextManager[Weights]]


class Engine(EngineCore):
    """Runs a Llama on this machine's cores or its GPU."""

    @torch.inference_mode()
    def __init__(self, config: EngineConfig, model_dir: Path, open_weights: OpenWeights = Weights) -> None:
        device = choose_device(config)
        config = for_device(config, device)
        architecture = read_architecture(model_dir)
        limit = min(config.max_model_len or architecture.max_model_len, architecture.max_model_len)
        if config.dtype == "auto":
            config = replace(config, dtype="bfloat16" if device == "cuda" else _choose_dtype(config, architecture))
        launcher: Launcher | None = None
        pace: Pace | None = Pace(max_prefill_tokens=config.max_prefill_tokens, max_slowdown=config.max_slowdown)
        if device == "cuda":
            from axon.engine.cuda.opening import open_runner

            with open_weights(model_dir, _DTYPES[config.dtype]) as weights:
                launcher, num_blocks = open_runner(config, architecture, weights, max_model_len=limit)
            runner: Runner = launcher
            kernel, pace = f"cuda-{config.dtype}", None  # how long a launched step takes is not seen
        elif config.dtype == "int8":
            runner, num_blocks, kernel = _open_native(config, model_dir, architecture, limit)
        else:
            runner, num_blocks, kernel = _open_torch(config, model_dir, architecture)
        scheduler = Scheduler(
            BlockPool(num_blocks, config.block_size),
            max_sequences=config.max_sequences,
            max_batch_tokens=config.max_batch_tokens,
            max_prefill_tokens=config.max_prefill_tokens,
            max_model_len=limit,
            eos_ids=architecture.eos_ids,
            policy=make_policy(config.policy),
            version=f"{model_dir.resolve()} {kernel}",
        )
        super().__init__(scheduler, runner, kernel=kernel, pace=pace, launcher=launcher, speculates=config.speculate)


def choose_device(config: EngineConfig) -> Literal["cpu", "cuda"]:
    """Where an engine of these settings runs; raises ``Misconfigured`` where it cannot."""
    has_gpu = torch.cuda.is_available()
    if config.device == "cuda" and not has_gpu:
        raise Misconfigured("engine.device = cuda, but torch finds no NVIDIA GPU")
    runs_there = config.dtype == "auto" or config.dtype in _DTYPES
    if config.device == "cuda" and not runs_there:
        raise Misconfigured(f"engine.dtype = {config.dtype} does not run on a GPU; bfloat16 and float32 do")
    return "cuda" if config.device != "cpu" and has_gpu and runs_there else "cpu"


def _open_torch(config: EngineConfig, model_dir: Path, architecture: Architecture) -> tuple[Runner, int, str]:
    """The plain way: any dtype of torch's, the reference for every other way."""
    torch.set_num_threads(config.threads or torch.get_num_threads())
    dtype = _DTYPES[config.dtype]
    num_blocks = _num_blocks(config, block_bytes(architecture, config.block_size, dtype))
    with Weights(model_dir, dtype) as weights:
        model = Llama(architecture, weights)
    attention = Attention(architecture, KVMemory(architecture, num_blocks, config.block_size, dtype))
    return ModelRunner(model, attention), num_blocks, f"torch-{config.dtype}"


def _choose_dtype(config: EngineConfig, architecture: Architecture) -> Literal["int8", "float32"]:
    """int8 where its kernels run; elsewhere float32, and the log says why."""
    try:
        _require_native(config, architecture)
    except Misconfigured as error:
        logger.warning("the model runs in float32, several times slower than in int8: %s", error)
        return "float32"
    return "int8"


def _require_native(config: EngineConfig, architecture: Architecture) -> None:
    """Finds or builds the int8 kernels; raises ``Misconfigured`` where they do not run, or not this model."""
    from axon.engine.native import library, model

    if config.block_size != library.BLOCK_SIZE:
        raise Misconfigured(f"engine.dtype = int8 needs engine.block_size = {library.BLOCK_SIZE}")
    model.refuse_unsupported(architecture)
    library.load()


def _open_native(
    config: EngineConfig, model_dir: Path, architecture: Architecture, max_model_len: int
) -> tuple[Runner, int, str]:
    """The quick way: int8 kernels; raises ``Misconfigured`` where there are none and no compiler."""
    from axon.engine.native import library, model, runner

    _require_native(config, architecture)
    torch.set_num_threads(1)  # the kernels have threads of their own
    num_blocks = _num_blocks(config, model.block_bytes(architecture))
    threads = config.threads or os.cpu_count() or 1
    native = runner.open_runner(
        architecture, model_dir, num_blocks=num_blocks, threads=threads, max_model_len=max_model_len
    )
    return native, num_blocks, library.kernel_id()


def _num_blocks(config: EngineConfig, bytes_per_block: int) -> int:
    num_blocks = config.kv_memory_bytes // bytes_per_block
    if num_blocks < 1:
        raise Misconfigured(f"kv_memory_bytes = {config.kv_memory_bytes} holds not even one block")
    return num_blocks
