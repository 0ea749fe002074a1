"""Opens a model on a GPU: loads it, measures the largest step, and fills the remaining memory with KV blocks.

While the weights are on their way, every kind of step is run once on what has arrived of them: kernels are compiled or
loaded meanwhile. Of a single rank's CUDA graphs only the largest are recorded here; the others follow between steps.
"""

from dataclasses import replace

import torch

from axon.domain.sampling import Sampling
from axon.engine.batch import Batch, Draw, Span
from axon.engine.config import EngineConfig
from axon.engine.cuda.adapters.adapter_pages import CudaAdapters, num_pages
from axon.engine.cuda.memory.kv_memory import KVBlocks, block_bytes, blocks_in
from axon.engine.cuda.model import CudaLlama
from axon.engine.cuda.rows import FP8
from axon.engine.cuda.runner import CudaRunner
from axon.engine.cuda.weights.layers import Source
from axon.engine.cuda.weights.upload import Upload
from axon.engine.load.architecture import Architecture
from axon.engine.load.weights import Weights
from axon.engine.parallel.group import Alone, Group
from axon.engine.runner import DraftMemory
from axon.errors import Misconfigured

_DEVICE = torch.device("cuda", 0)
_SHRINK = 0.95


@torch.inference_mode()
def open_runner(
    config: EngineConfig,
    architecture: Architecture,
    weights: Source,
    *,
    max_model_len: int,
    device: torch.device = _DEVICE,
    group: Group | None = None,
    draft_memory: DraftMemory | None = None,
    drafts: bool = False,
) -> tuple[CudaRunner, int]:
    """A runner and its number of blocks; raises ``Misconfigured`` if not even one block fits.

    All ranks of a group do this at the same time, and all get as many blocks as fit on the one with the least memory.
    ``draft_memory``: what a draft model will take of the device's memory. ``drafts``: this model drafts for another.
    """
    room = draft_memory or DraftMemory(fixed_bytes=0, block_bytes=0)
    if isinstance(weights, Weights) and device.type == "cuda":
        with Upload(weights, device) as upload:
            return _open_on(config, architecture, upload, max_model_len, device, group or Alone(), room, drafts)
    return _open_on(config, architecture, weights, max_model_len, device, group or Alone(), room, drafts)


def _open_on(
    config: EngineConfig,
    architecture: Architecture,
    weights: Source,
    max_model_len: int,
    device: torch.device,
    group: Group,
    draft_memory: DraftMemory,
    drafts: bool,
) -> tuple[CudaRunner, int]:
    max_rows = min(config.max_sequences, config.max_batch_tokens)
    model = CudaLlama(
        architecture,
        weights,
        device,
        max_model_len=max_model_len,
        max_rows=max_rows,
        group=group,
        fp8=config.dtype == "fp8",
    )
    if not group.is_cut and config.dtype in ("bfloat16", "float32"):
        count = num_pages(architecture, model.dtype, slots=config.adapter_slots, most_bytes=config.adapter_memory_bytes)
        model.adapters = CudaAdapters(architecture, model.dtype, device, count=count) if count else None
    group.connect()
    num_blocks = group.least(_num_blocks(config, model, max_model_len, max_rows, draft_memory))
    if group.is_cut:
        runner = _open(config, model, max_model_len, max_rows, num_blocks)
    else:
        runner, num_blocks = _open_largest(config, model, max_model_len, max_rows, num_blocks, drafts)
    runner.rehearse()
    if isinstance(weights, Upload):
        weights.finish()  # before graphs are recorded: other threads must not call the driver meanwhile
    if device.type == "cuda" and group.records:
        if group.is_cut:
            runner.capture()
        else:
            runner.capture_largest()
    return runner, num_blocks


def _num_blocks(
    config: EngineConfig, model: CudaLlama, max_model_len: int, max_rows: int, draft_memory: DraftMemory
) -> int:
    bytes_per_block = (
        block_bytes(model.architecture, config.block_size, _kv_dtype(config, model)) + draft_memory.block_bytes
    )
    if config.kv_memory_bytes:
        return config.kv_memory_bytes // bytes_per_block
    peak_bytes = _rehearse(config, model, max_model_len, max_rows)
    torch.cuda.empty_cache()
    free_bytes, total_bytes = torch.cuda.mem_get_info(model.device)
    return blocks_in(
        free_bytes - draft_memory.fixed_bytes,
        total_bytes=total_bytes,
        fraction=config.gpu_memory_fraction,
        peak_bytes=peak_bytes,
        bytes_per_block=bytes_per_block,
    )


def _rehearse(config: EngineConfig, model: CudaLlama, max_model_len: int, max_rows: int) -> int:
    """Runs the largest step with one block for all its sequences; returns its peak memory in bytes."""
    runner = _open(config, model, max_model_len, max_rows, 1)
    before = torch.cuda.memory_allocated(model.device)
    torch.cuda.reset_peak_memory_stats(model.device)
    runner.run(_largest_step(config, max_model_len, max_rows))
    return torch.cuda.max_memory_allocated(model.device) - before


def _largest_step(config: EngineConfig, max_model_len: int, max_rows: int) -> Batch:
    """A step of as many tokens as fit, all of them scored: what that needs beyond a plain step must fit too."""
    draw = Draw(sampling=Sampling(max_tokens=1), seed=0, choice=0, position=0)
    score = replace(draw, sampling=Sampling(max_tokens=1, logprobs=1), given=0)
    spans: list[Span] = []
    left = config.max_batch_tokens
    while left and len(spans) < max_rows:
        others = max_rows - len(spans) - 1
        length = max(1, min(max_model_len, left - min(others, left - 1)))
        blocks = (0,) * -(-length // config.block_size)
        scores, arrival = (score,) * (length - 1), len(spans)
        spans.append(
            Span(id="", first=0, token_ids=(0,) * length, block_ids=blocks, draw=draw, scores=scores, arrival=arrival)
        )
        left -= length
    return Batch(tuple(spans))


def _open_largest(
    config: EngineConfig, model: CudaLlama, max_model_len: int, max_rows: int, num_blocks: int, drafts: bool
) -> tuple[CudaRunner, int]:
    """Opens with fewer blocks where an allocation fails, instead of failing."""
    while num_blocks >= 1:
        try:
            return _open(config, model, max_model_len, max_rows, num_blocks, drafts=drafts), num_blocks
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            num_blocks = int(num_blocks * _SHRINK)
    raise Misconfigured("the GPU has no memory for even one KV block: choose a smaller model or max_batch_tokens")


def _open(
    config: EngineConfig, model: CudaLlama, max_model_len: int, max_rows: int, num_blocks: int, *, drafts: bool = False
) -> CudaRunner:
    kv = KVBlocks(
        model.architecture,
        num_blocks=num_blocks,
        block_size=config.block_size,
        num_slots=max_rows,
        table_width=-(-max_model_len // config.block_size),
        dtype=_kv_dtype(config, model),
        device=model.device,
    )
    return CudaRunner(
        model,
        kv,
        max_rows=max_rows,
        max_tokens=config.max_batch_tokens,
        speculates=config.speculate and not drafts,
        drafts=drafts,
    )


def _kv_dtype(config: EngineConfig, model: CudaLlama) -> torch.dtype:
    return FP8 if config.kv_dtype == "fp8" else model.dtype
