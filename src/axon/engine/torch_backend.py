"""The model on PyTorch, on a GPU or in plain float32 or bfloat16 on a CPU. Chooses neither device nor dtype."""

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch

from axon.engine.config import EngineConfig, num_blocks_in
from axon.engine.load.architecture import Architecture
from axon.engine.load.arranged import arranged
from axon.engine.load.weights import Weights
from axon.engine.parallel.group import Alone, Group
from axon.engine.parallel.shards import Shards
from axon.engine.pytorch.attention import Attention
from axon.engine.pytorch.kv_memory import KVMemory, block_bytes
from axon.engine.pytorch.llama import Llama
from axon.engine.pytorch.low_rank import LowRankAdapters
from axon.engine.pytorch.mover import TorchMover
from axon.engine.pytorch.runner import ModelRunner
from axon.engine.runner import Backend, DraftMemory

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "fp8": torch.bfloat16}
"""The type that files are read in; ``fp8`` rounds the matrices of the layers afterwards."""
OpenWeights = Callable[[Path, torch.dtype], AbstractContextManager[Weights]]


@torch.inference_mode()
def open_model(
    config: EngineConfig,
    model_dir: Path,
    architecture: Architecture,
    *,
    max_model_len: int,
    group: Group | None = None,
    device: torch.device | None = None,
    open_weights: OpenWeights | None = None,
    draft_memory: DraftMemory | None = None,
    drafts: bool = False,
) -> Backend:
    """Loads the model, or this rank's part of it, with the device and dtype that ``config`` names.

    ``draft_memory``: what a draft model takes of the same GPU. ``drafts``: this one drafts for another, on a GPU.
    """
    group = group or Alone()
    local = group.share.of(architecture)
    suffix = f"-tp{group.share.size}" if group.is_cut else ""
    with (open_weights or Weights)(model_dir, DTYPES[config.dtype]) as weights:
        if config.device == "cuda":
            device = device or torch.device("cuda", 0)
        named = arranged(weights, architecture, device)
        source: Any = Shards(named, architecture, group.share) if group.is_cut else named
        if config.device == "cuda":
            from axon.engine.cuda.memory.mover import CudaMover
            from axon.engine.cuda.startup import open_runner

            assert device is not None
            runner, num_blocks = open_runner(
                config,
                local,
                source,
                max_model_len=max_model_len,
                device=device,
                group=group,
                draft_memory=draft_memory,
                drafts=drafts,
            )
            kv_suffix = "-kv8" if config.kv_dtype == "fp8" else ""
            weights_suffix = "-w4" if runner.model.is_packed else ""
            kernel = f"cuda-{config.dtype}{weights_suffix}{kv_suffix}{suffix}"
            later = None if group.is_cut else runner.capture_next
            return Backend(
                runner=runner,
                launcher=runner,
                num_blocks=num_blocks,
                kernel=kernel,
                later=later,
                scores_any=True,
                adapters=runner.adapters,
                block_bytes=runner.kv.tensor[0].nbytes,
                open_mover=partial(CudaMover, runner.kv),
            )
        model = _load_torch(config, local, source, group)
    group.connect()
    bytes_of_block = block_bytes(local, config.block_size, DTYPES[config.dtype])
    num_blocks = num_blocks_in(config, bytes_of_block)
    kv = KVMemory(local, num_blocks, config.block_size, DTYPES[config.dtype])
    adapters = None if group.is_cut else LowRankAdapters(architecture)
    return Backend(
        runner=ModelRunner(model, Attention(local, kv), group, adapters),
        adapters=adapters,
        num_blocks=num_blocks,
        kernel=f"torch-{config.dtype}{suffix}",
        block_bytes=bytes_of_block,
        open_mover=partial(TorchMover, kv),
    )


def warm_up(device: Literal["cpu", "cuda"]) -> None:
    """Imports what a model on this device needs; on a GPU makes its CUDA context."""
    if device == "cuda":
        importlib.import_module("axon.engine.cuda.startup")
        square = torch.zeros(64, 64, dtype=torch.bfloat16, device="cuda")
        torch.nn.functional.linear(square, square)  # creates cuBLAS's handle too
        torch.cuda.synchronize()


def _load_torch(config: EngineConfig, architecture: Architecture, weights: Any, group: Group) -> Llama:
    """The model in plain PyTorch, in any of its dtypes: the reference for the other backends."""
    torch.set_num_threads(config.threads or max(1, torch.get_num_threads() // config.num_local_ranks))
    return Llama(architecture, weights, group)
