"""The backend of an engine process: chooses device and arithmetic, loads the model, sizes its KV memory.

It imports torch only where the model runs on it: of an int8 engine's start, that import took three quarters.
"""

import ctypes
import logging
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from axon.engine.config import EngineConfig, num_blocks_in
from axon.engine.load.architecture import Architecture
from axon.engine.load.draft_head import DraftHead
from axon.engine.load.family import FAMILIES
from axon.engine.runner import Backend, DraftMemory
from axon.errors import Misconfigured
from axon.runtime.cores import usable_cores

if TYPE_CHECKING:
    import torch

    from axon.engine.parallel.group import Group
    from axon.engine.torch_backend import OpenWeights

logger = logging.getLogger(__name__)

_ON_GPU = ("float32", "bfloat16", "fp8")
"""The dtypes that run on a GPU."""
_FP8_MULTIPLE = 16
"""Rows and columns of a matrix in fp8 must be multiples of this."""


def open_backend(
    config: EngineConfig,
    model_dir: Path,
    architecture: Architecture,
    *,
    max_model_len: int,
    group: "Group | None" = None,
    device: "torch.device | None" = None,
    open_weights: "OpenWeights | None" = None,
    head: DraftHead | None = None,
    draft_memory: DraftMemory | None = None,
    drafts: bool = False,
) -> Backend:
    """Loads the model, or this rank's part of it, with the device and dtype that ``config`` names.

    ``head`` drafts for it, in int8 alone. ``draft_memory``: what a draft model takes of the same GPU. ``drafts``:
    this one drafts for another, on a GPU.
    """
    if config.dtype == "int8":
        return _open_native(config, model_dir, architecture, max_model_len, head)
    from axon.engine import torch_backend

    return torch_backend.open_model(
        config,
        model_dir,
        architecture,
        max_model_len=max_model_len,
        group=group,
        device=device,
        open_weights=open_weights,
        draft_memory=draft_memory,
        drafts=drafts,
    )


def block_bytes_of(config: EngineConfig, architecture: Architecture) -> int:
    """Bytes of a KV block of a model on the CPU, over all layers."""
    if config.dtype == "int8":
        from axon.engine.native import model

        return model.block_bytes(architecture)
    from axon.engine.pytorch.kv_memory import block_bytes
    from axon.engine.torch_backend import DTYPES

    return block_bytes(architecture, config.block_size, DTYPES[config.dtype])


def warm_up(config: EngineConfig) -> None:
    """Does what the start of any model with this config needs first: imports, the kernels' library, a CUDA context."""
    device = choose_device(config)
    if device == "cuda" or config.dtype in _ON_GPU or config.tensor_parallel > 1:
        from axon.engine import torch_backend

        torch_backend.warm_up(device)
        return
    from axon.engine.native import library, runner  # noqa: F401

    with suppress(Misconfigured):  # a model that needs the kernels says so when it starts
        library.load()


def choose_device(config: EngineConfig) -> Literal["cpu", "cuda"]:
    """The device that an engine with this config runs on; raises ``Misconfigured`` if it cannot run there."""
    runs_there = config.dtype == "auto" or config.dtype in _ON_GPU
    if config.device == "cpu" or (config.device == "auto" and not runs_there):
        _refuse_fp8_here(config)
        return "cpu"
    found = has_gpu()
    if config.device == "cuda" and not found:
        raise Misconfigured("engine.device = cuda, but torch finds no NVIDIA GPU")
    if config.device == "cuda" and not runs_there:
        raise Misconfigured(f"engine.dtype = {config.dtype} does not run on a GPU; bfloat16, fp8 and float32 do")
    if not found:
        _refuse_fp8_here(config)
        return "cpu"
    if "fp8" in (config.dtype, config.kv_dtype) and not has_fp8():
        raise Misconfigured(
            f"{_fp8_setting(config)} needs a GPU of the Hopper generation (H100, H200) or newer, and this one is "
            "older: remove it to compute in bfloat16"
        )
    return "cuda"


def _refuse_fp8_here(config: EngineConfig) -> None:
    if "fp8" in (config.dtype, config.kv_dtype):
        raise Misconfigured(f"{_fp8_setting(config)} runs on an NVIDIA GPU alone, and this engine runs on the CPU")


def _fp8_setting(config: EngineConfig) -> str:
    return "engine.dtype = fp8" if config.dtype == "fp8" else "engine.kv_dtype = fp8"


def has_gpu() -> bool:
    """Whether torch finds an NVIDIA GPU; torch is imported for it only where the driver's library is there."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    import torch

    return torch.cuda.is_available()


def has_fp8() -> bool:
    """Whether the GPU computes in fp8; asked only where there is one."""
    import torch

    return torch.cuda.get_device_capability() >= (9, 0)


def choose_dtype(config: EngineConfig, architecture: Architecture) -> EngineConfig:
    """The config with its dtype chosen; raises ``Misconfigured`` for a dtype that several ranks or the model cannot
    run."""
    if "fp8" in (config.dtype, config.kv_dtype):
        _refuse_fp8_for(config, architecture)
    if config.device == "cuda":
        return replace(config, dtype=_own_dtype(config, architecture)) if config.dtype == "auto" else config
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
        logger.warning(
            "the model runs in float32, several times slower than in int8: %s",
            error,
            extra={"axon_event": "engine.runs_float32"},
        )
        return replace(config, dtype="float32")
    return replace(config, dtype="int8")


def _own_dtype(config: EngineConfig, architecture: Architecture) -> Literal["bfloat16", "fp8"]:
    """What a model runs in on a GPU if nobody has chosen: fp8 where its files are fp8 and the GPU has it."""
    if not architecture.is_fp8 or not has_fp8():
        return "bfloat16"
    try:
        _refuse_fp8_for(replace(config, dtype="fp8"), architecture)
    except Misconfigured:
        return "bfloat16"
    return "fp8"


def _refuse_fp8_for(config: EngineConfig, architecture: Architecture) -> None:
    """Raises ``Misconfigured`` where a family has no fp8, or matrices, on a rank too, a size that no product takes."""
    if config.dtype == "fp8" and not architecture.family.is_plain:
        plain = ", ".join(name for name, family in FAMILIES.items() if family.is_plain)
        raise Misconfigured(
            f"engine.dtype = fp8 does not run {architecture.model_type} models yet: compute in bfloat16, or choose a "
            f"model of type {plain}"
        )
    ranks = config.tensor_parallel
    heads = architecture.num_heads * architecture.head_dim // ranks
    kv_heads = -(-architecture.num_kv_heads // ranks) * architecture.head_dim
    sizes = (architecture.hidden_size, architecture.intermediate_size // ranks, heads, kv_heads)
    if config.dtype == "fp8" and any(size % _FP8_MULTIPLE for size in sizes):
        raise Misconfigured(
            f"engine.dtype = fp8 needs matrices whose sizes are multiples of {_FP8_MULTIPLE}, and this model has "
            f"{', '.join(map(str, sizes))}{' on each rank' if ranks > 1 else ''}: compute it in bfloat16"
        )


def _require_native(config: EngineConfig, architecture: Architecture) -> None:
    """Finds or builds the int8 kernels; raises ``Misconfigured`` if they cannot run, or cannot run this model."""
    from axon.engine.native import library, model

    if config.block_size != library.BLOCK_SIZE:
        raise Misconfigured(f"engine.dtype = int8 needs engine.block_size = {library.BLOCK_SIZE}")
    model.refuse_unsupported(architecture)
    library.load()


def _open_native(
    config: EngineConfig, model_dir: Path, architecture: Architecture, max_model_len: int, head: DraftHead | None
) -> Backend:
    """The int8 kernels on the CPU; raises ``Misconfigured`` if there are none and no compiler."""
    from axon.engine.native import draft_head, library, model, runner

    _require_native(config, architecture)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)  # the kernels have threads of their own
    block_bytes = model.block_bytes(architecture) + (draft_head.head_bytes(head.architecture) if head else 0)
    num_blocks = num_blocks_in(config, block_bytes)
    threads = config.threads or usable_cores()
    native = runner.open_runner(
        architecture, model_dir, num_blocks=num_blocks, threads=threads, max_model_len=max_model_len, head=head
    )
    return Backend(
        runner=native,
        num_blocks=num_blocks,
        kernel=library.kernel_id(),
        block_bytes=block_bytes,
        open_mover=native.open_mover,
        adapters=native.adapters,
        head=native.head,
    )
