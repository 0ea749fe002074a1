"""Opens a draft model beside its target: one tokenizer, one arithmetic, one memory for the KV blocks of both."""

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from axon.engine.backend import block_bytes_of, open_backend
from axon.engine.config import NO_DRAFT, EngineConfig, num_blocks_in
from axon.engine.draft_model import DraftModel
from axon.engine.drafts import Drafts
from axon.engine.load.architecture import Architecture, read_architecture
from axon.engine.load.draft_head import DraftHead, read_head
from axon.engine.load.head_folder import DEFAULT_HEAD, is_head
from axon.engine.load.same_tokens import common_size, require_same_tokens
from axon.engine.runner import Backend, DraftMemory
from axon.errors import Misconfigured

if TYPE_CHECKING:
    from axon.engine.torch_backend import OpenWeights

logger = logging.getLogger(__name__)

_GPU_ROWS, _GPU_TOKENS = 64, 2048
"""Streams and tokens of a batch of the draft model on a GPU; it is asked for fewer."""
_GPU_BUFFERS = 512 << 20
"""Bytes for its buffers and graphs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftPlan:
    """A draft model that can be opened, and the settings of both models with their parts of the KV memory."""

    target: EngineConfig
    draft: EngineConfig
    folder: Path
    architecture: Architecture
    vocab_size: int
    """Ids that both models have."""
    head: None = None
    draft_memory: DraftMemory | None = None
    """What the draft model takes of the target's GPU; None on a CPU."""

    def open(self, target: Backend, *, max_model_len: int, open_weights: "OpenWeights | None" = None) -> Drafts:
        """Loads the draft model, beside its target."""
        max_len = min(max_model_len, self.architecture.max_model_len)
        if self.draft_memory is not None:
            return self._open_on_gpu(self.draft_memory, target, max_len, open_weights)
        backend = open_backend(self.draft, self.folder, self.architecture, max_model_len=max_len)
        model = DraftModel(backend.runner, vocab_size=self.vocab_size, max_len=max_len)
        model.warm_up()
        return model

    def _open_on_gpu(
        self, draft_memory: DraftMemory, target: Backend, max_len: int, open_weights: "OpenWeights | None"
    ) -> DraftModel:
        """A runner of its own, with graphs of its own, and a block for each of the target's."""
        config = replace(self.draft, kv_memory_bytes=target.num_blocks * draft_memory.block_bytes)
        backend = open_backend(
            config, self.folder, self.architecture, max_model_len=max_len, open_weights=open_weights, drafts=True
        )
        if backend.num_blocks < target.num_blocks:
            raise Misconfigured(
                f"engine.draft_model = {self.folder} finds no memory beside its target: give a smaller one, or a "
                "smaller engine.gpu_memory_fraction"
            )
        return DraftModel(
            backend.runner,
            vocab_size=self.vocab_size,
            max_len=max_len,
            launcher=backend.launcher,
            later=backend.later,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadPlan:
    """A draft head that fits the model, which is opened with it."""

    target: EngineConfig
    head: DraftHead
    draft_memory: None = None

    def open(self, target: Backend, *, max_model_len: int, open_weights: "OpenWeights | None" = None) -> Drafts:
        """The head as the target's backend has opened it."""
        assert target.head is not None
        assert target.head.max_len <= max_model_len
        return target.head


def plan_draft(config: EngineConfig, model_dir: Path, architecture: Architecture) -> DraftPlan | HeadPlan | None:
    """The plan for ``config.draft_model``, a model or a head; None without one, or where this engine can use none.

    ``config`` has its device and dtype chosen. Raises ``Misconfigured`` for a draft model that cannot draft for the
    model.
    """
    if config.draft_model in ("", NO_DRAFT) or not config.speculate:
        return None
    folder = Path(config.draft_model)
    is_usable = config.dtype == "int8" and config.tensor_parallel == 1 and config.draft_tokens > 0
    if folder == DEFAULT_HEAD and not is_usable:
        return None  # nobody has asked for it
    if config.tensor_parallel > 1:
        logger.warning(
            "the draft model %s is not used: it drafts for one rank alone, and this model is cut over several",
            config.draft_model,
            extra={"axon_event": "engine.draft_model_unused"},
        )
        return None
    if config.draft_tokens < 1:
        raise Misconfigured(f"engine.draft_tokens = {config.draft_tokens}: give at least 1, or no engine.draft_model")
    if not (folder / "config.json").is_file():
        raise Misconfigured(f"engine.draft_model = {folder} is no folder of a model: it has no config.json")
    if is_head(folder):
        return _plan_head(config, folder, architecture)
    draft = read_architecture(folder)
    require_same_tokens(model_dir, folder, (architecture.vocab_size, draft.vocab_size))
    if config.device == "cuda":
        return _plan_on_gpu(config, folder, architecture, draft)
    ours, theirs = block_bytes_of(config, architecture), block_bytes_of(config, draft)
    num_blocks = num_blocks_in(config, ours + theirs)
    return DraftPlan(
        target=replace(config, kv_memory_bytes=num_blocks * ours),
        draft=replace(config, kv_memory_bytes=num_blocks * theirs),
        folder=folder,
        architecture=draft,
        vocab_size=common_size(architecture, draft),
    )


def _plan_head(config: EngineConfig, folder: Path, architecture: Architecture) -> HeadPlan | None:
    head = read_head(folder, architecture)
    if config.dtype == "int8":
        return HeadPlan(target=config, head=head)
    logger.warning(
        "the draft head %s is not used: heads draft in int8 alone, and this model computes in %s",
        folder,
        config.dtype,
        extra={"axon_event": "engine.draft_model_unused"},
    )
    return None


def _plan_on_gpu(config: EngineConfig, folder: Path, target: Architecture, draft: Architecture) -> DraftPlan:
    """The draft model computes in bfloat16 beside a target in fp8 or four bits: its weights are few."""
    exact = config.dtype == "float32"
    num_bytes = 4 if exact else 2
    numbers = 2 * draft.num_layers * draft.num_kv_heads * draft.head_dim * config.block_size
    own = replace(
        config,
        dtype="float32" if exact else "bfloat16",
        kv_dtype="auto",
        adapter_slots=0,
        max_sequences=min(config.max_sequences, _GPU_ROWS),
        max_batch_tokens=min(config.max_batch_tokens, _GPU_TOKENS),
    )
    fixed_bytes = num_bytes * draft.num_parameters() + _GPU_BUFFERS
    return DraftPlan(
        target=config,
        draft=own,
        folder=folder,
        architecture=draft,
        vocab_size=common_size(target, draft),
        draft_memory=DraftMemory(fixed_bytes=fixed_bytes, block_bytes=num_bytes * numbers),
    )
