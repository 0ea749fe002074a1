"""The backend of an engine process: chooses device and arithmetic, loads the model, sizes its KV memory."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch

from axon.engine.config import EngineConfig
from axon.engine.load.architecture import Architecture
from axon.engine.load.weights import Weights
from axon.engine.parallel.group import Alone, Group
from axon.engine.parallel.shards import Shards
from axon.engine.pytorch.attention import Attention
from axon.engine.pytorch.kv_memory import KVMemory, block_bytes
from axon.engine.pytorch.llama import Llama
from axon.engine.pytorch.runner import ModelRunner
from axon.engine.runner import Launcher, Runner
from axon.errors import Misconfigured
from axon.runtime.cores import usable_cores

logger = logging.getLogger(__name__)

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
OpenWeights = Callable[[Path, torch.dtype], AbstractContextManager[Weights]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """A loaded model and what runs its batches."""

    runner: Runner
    num_blocks: int
    kernel: str
    launcher: Launcher | None = None
    """The runner again, where it computes asynchronously; else None."""


@torch.inference_mode()
def open_backend(
    config: EngineConfig,
    model_dir: Path,
    architecture: Architecture,
    *,
    max_model_len: int,
    group: Group | None = None,
    device: torch.device | None = None,
    open_weights: OpenWeights = Weights,
) -> Backend:
    """Loads the model, or this rank's part of it, with the device and dtype that ``config`` names."""
    if config.dtype == "int8":
        return _open_native(config, model_dir, architecture, max_model_len)
    group = group or Alone()
    local = group.share.of(architecture)
    suffix = f"-tp{group.share.size}" if group.is_cut else ""
    with open_weights(model_dir, DTYPES[config.dtype]) as weights:
        source: Any = Shards(weights, architecture, group.share) if group.is_cut else weights
        if config.device == "cuda":
            from axon.engine.cuda.startup import open_runner

            device = device or torch.device("cuda", 0)
            runner, num_blocks = open_runner(
                config, local, source, max_model_len=max_model_len, device=device, group=group
            )
            kernel = f"cuda-{config.dtype}{suffix}"
            return Backend(runner=runner, launcher=runner, num_blocks=num_blocks, kernel=kernel)
        model = _load_torch(config, local, source, group)
    group.connect()
    num_blocks = num_blocks_in(config, block_bytes(local, config.block_size, DTYPES[config.dtype]))
    attention = Attention(local, KVMemory(local, num_blocks, config.block_size, DTYPES[config.dtype]))
    runner_here = ModelRunner(model, attention, group)
    return Backend(runner=runner_here, num_blocks=num_blocks, kernel=f"torch-{config.dtype}{suffix}")


def _load_torch(config: EngineConfig, architecture: Architecture, weights: Any, group: Group) -> Llama:
    """The model in plain PyTorch, in any of its dtypes: the reference for the other backends."""
    torch.set_num_threads(config.threads or max(1, torch.get_num_threads() // config.num_local_ranks))
    return Llama(architecture, weights, group)


def choose_device(config: EngineConfig) -> Literal["cpu", "cuda"]:
    """The device that an engine with this config runs on; raises ``Misconfigured`` if it cannot run there."""
    has_gpu = torch.cuda.is_available()
    if config.device == "cuda" and not has_gpu:
        raise Misconfigured("engine.device = cuda, but torch finds no NVIDIA GPU")
    runs_there = config.dtype == "auto" or config.dtype in DTYPES
    if config.device == "cuda" and not runs_there:
        raise Misconfigured(f"engine.dtype = {config.dtype} does not run on a GPU; bfloat16 and float32 do")
    return "cuda" if config.device != "cpu" and has_gpu and runs_there else "cpu"


def choose_dtype(config: EngineConfig, architecture: Architecture) -> EngineConfig:
    """The config with its dtype chosen; raises ``Misconfigured`` for a dtype that several ranks cannot run."""
    if config.device == "cuda":
        return replace(config, dtype="bfloat16") if config.dtype == "auto" else config
    if config.tensor_parallel > 1:
        if config.dtype not in ("auto", "float32"):
            raise Misconfigured(
                f"engine.tensor_parallel = {config.tensor_parallel} on a CPU computes in float32 alone: remove "
                f"engine.dtype = {config.dtype}, or run one rank"
            )
        return replace(config, dtype="float32")
    if config.dtype != "auto":
        return config
    try:
        _require_native(config, architecture)
    except Misconfigured as error:
        logger.warning("the model runs in float32, several times slower than in int8: %s", error)
        return replace(config, dtype="float32")
    return replace(config, dtype="int8")


def _require_native(config: EngineConfig, architecture: Architecture) -> None:
    """Finds or builds the int8 kernels; raises ``Misconfigured`` if they cannot run, or cannot run this model."""
    from axon.engine.native import library, model

    if config.block_size != library.BLOCK_SIZE:
        raise Misconfigured(f"engine.dtype = int8 needs engine.block_size = {library.BLOCK_SIZE}")
    model.refuse_unsupported(architecture)
    library.load()


def _open_native(config: EngineConfig, model_dir: Path, architecture: Architecture, max_model_len: int) -> Backend:
    """The int8 kernels on the CPU; raises ``Misconfigured`` if there are none and no compiler."""
    from axon.engine.native import library, model, runner

    _require_native(config, architecture)
    torch.set_num_threads(1)  # the kernels have threads of their own
    num_blocks = num_blocks_in(config, model.block_bytes(architecture))
    threads = config.threads or usable_cores()
    native = runner.open_runner(
        architecture, model_dir, num_blocks=num_blocks, threads=threads, max_model_len=max_model_len
    )
    return Backend(runner=native, num_blocks=num_blocks, kernel=library.kernel_id())


def num_blocks_in(config: EngineConfig, bytes_per_block: int) -> int:
    """Number of blocks that fit into ``kv_memory_bytes``; raises ``Misconfigured`` if not even one does."""
    num_blocks = config.kv_memory_bytes // bytes_per_block
    if num_blocks < 1:
        raise Misconfigured(f"kv_memory_bytes = {config.kv_memory_bytes} holds not even one block")
    return num_blocks
