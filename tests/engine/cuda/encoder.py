"""Encoders on a GPU: the vectors of the CPU, whatever the batch, up to the rounding of float32."""

from pathlib import Path

import numpy as np

from axon.engine.config import EngineConfig, for_device
from axon.engine.encoder.bert import BertEncoder
from tests.engine.encoder.models import made

_INPUTS = [[1, 2, 3], [4, 5, 6, 7, 8, 9, 10], [11], [12, 13, 14], list(range(36)), list(range(35, 0, -1))]
_LEAST_COSINE = 0.9999


def compare(root: Path) -> None:
    """Both devices' vectors of a batch, and those of each input alone."""
    for pooling in ("mean_tokens", "cls_token", "max_tokens"):
        folder = made(root / pooling, pooling=pooling)
        ours, theirs = (BertEncoder(for_device(EngineConfig(), device), folder) for device in ("cuda", "cpu"))
        together, alone = ours.encode(_INPUTS), [ours.encode([each])[0] for each in _INPUTS]
        for one, other, again in zip(together, theirs.encode(_INPUTS), alone, strict=True):
            assert _cosine(one, other) >= _LEAST_COSINE, (pooling, "CPU")
            assert _cosine(one, again) >= _LEAST_COSINE, (pooling, "alone")


def _cosine(one: bytes, other: bytes) -> float:
    left, right = np.frombuffer(one, "<f4").astype(float), np.frombuffer(other, "<f4").astype(float)
    return float(left @ right / np.linalg.norm(left) / np.linalg.norm(right))
