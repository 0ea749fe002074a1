"""Chooses the arithmetic of an embedding model: the native kernels where they can be had, PyTorch elsewhere."""

import logging
import sys
from collections.abc import Callable
from pathlib import Path

from axon.engine.config import EngineConfig
from axon.engine.encoder.engine import Encoder
from axon.errors import Misconfigured
from axon.runtime.cores import usable_cores

logger = logging.getLogger(__name__)


def open_encoder(config: EngineConfig, model_dir: Path, between: Callable[[], None] = lambda: None) -> Encoder:
    """Loads the model as ``config`` asks, with its device chosen; ``between`` is called between parts of a batch.

    Raises Misconfigured for an arithmetic that it cannot have.
    """
    if config.device == "cpu" and config.dtype in ("auto", "float32", "int8") and config.tensor_parallel == 1:
        try:
            return _open_native(config, model_dir, between)
        except Misconfigured as error:
            if config.dtype == "int8":
                raise
            logger.warning(
                "the embedding model runs on PyTorch, which is slower: %s",
                error,
                extra={"axon_event": "engine.runs_pytorch"},
            )
    from axon.engine.encoder.bert import BertEncoder

    return BertEncoder(config, model_dir)


def _open_native(config: EngineConfig, model_dir: Path, between: Callable[[], None]) -> Encoder:
    from axon.engine.encoder.native_bert import NativeBert

    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)  # the kernels have threads of their own
    return NativeBert(
        model_dir,
        threads=config.threads or usable_cores(),
        dtype="int8" if config.dtype == "int8" else "float32",
        max_model_len=config.max_model_len,
        between=between,
    )
