"""Opens a draft model beside its target: one tokenizer, one arithmetic, one memory for the KV blocks of both."""

import logging
from dataclasses import dataclass, replace
from pathlib import Path

from axon.engine.backend import block_bytes_of, open_backend
from axon.engine.config import EngineConfig, num_blocks_in
from axon.engine.draft_model import DraftModel
from axon.engine.load.architecture import Architecture, read_architecture
from axon.engine.load.same_tokens import common_size, require_same_tokens
from axon.errors import Misconfigured

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftPlan:
    """A draft model that can be opened, and the settings of both models with their parts of the KV memory."""

    target: EngineConfig
    draft: EngineConfig
    folder: Path
    architecture: Architecture
    vocab_size: int
    """Ids that both models have."""

    def open(self, *, max_model_len: int) -> DraftModel:
        """Loads the draft model."""
        max_len = min(max_model_len, self.architecture.max_model_len)
        backend = open_backend(self.draft, self.folder, self.architecture, max_model_len=max_len)
        model = DraftModel(backend.runner, vocab_size=self.vocab_size, max_len=max_len)
        model.warm_up()
        return model


def plan_draft(config: EngineConfig, model_dir: Path, architecture: Architecture) -> DraftPlan | None:
    """The plan for ``config.draft_model``; None without one, or where this engine can use none.

    ``config`` has its device and dtype chosen. Raises ``Misconfigured`` for a draft model that cannot draft for the
    model.
    """
    if not config.draft_model or not config.speculate:
        return None
    if config.device != "cpu" or config.tensor_parallel > 1:
        logger.warning(
            "the draft model %s is not used: it drafts for one rank on a CPU alone",
            config.draft_model,
            extra={"axon_event": "engine.draft_model_unused"},
        )
        return None
    if config.draft_tokens < 1:
        raise Misconfigured(f"engine.draft_tokens = {config.draft_tokens}: give at least 1, or no engine.draft_model")
    folder = Path(config.draft_model)
    if not (folder / "config.json").is_file():
        raise Misconfigured(f"engine.draft_model = {folder} is no folder of a model: it has no config.json")
    draft = read_architecture(folder)
    require_same_tokens(model_dir, folder, (architecture.vocab_size, draft.vocab_size))
    ours, theirs = block_bytes_of(config, architecture), block_bytes_of(config, draft)
    num_blocks = num_blocks_in(config, ours + theirs)
    return DraftPlan(
        target=replace(config, kv_memory_bytes=num_blocks * ours),
        draft=replace(config, kv_memory_bytes=num_blocks * theirs),
        folder=folder,
        architecture=draft,
        vocab_size=common_size(architecture, draft),
    )
