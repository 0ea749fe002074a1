"""A classification head behind an encoder: logits of the classes from the first token's state. Knows no layers.

Every input is computed by itself, so that its logits are bitwise the same alone and in any batch.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from axon.engine.encoder.engine import Encoder
from axon.engine.load.arrays import Arrays, Floats
from axon.engine.load.encoder import Encoder as Shape
from axon.engine.load.encoder import read_encoder, tensor_prefix


class Headed:
    """An encoder with a classification head; its vectors are logits. The encoder gives the state of the first token."""

    def __init__(self, encoder: Encoder, shape: Shape, model_dir: Path) -> None:
        self._encoder = encoder
        dense, last = shape.head_names(tensor_prefix(model_dir))
        arrays = Arrays(model_dir)
        self._dense, self._dense_bias = arrays.take(f"{dense}.weight"), arrays.take(f"{dense}.bias")
        self._last, self._last_bias = arrays.take(f"{last}.weight"), arrays.take(f"{last}.bias")

    @property
    def kernel(self) -> str:
        return f"{self._encoder.kernel}-classes"

    @property
    def max_model_len(self) -> int:
        return self._encoder.max_model_len

    @property
    def vocab_size(self) -> int:
        return self._encoder.vocab_size

    def encode(self, batch: Sequence[Sequence[int]], second_starts: Sequence[int] = ()) -> list[bytes]:
        """The logits of the inputs, in order."""
        return [self._logits(state).tobytes() for state in self._encoder.encode(batch, second_starts)]

    def _logits(self, state: bytes) -> Floats:
        first = np.frombuffer(state, "<f4")
        inner = np.tanh(self._dense @ first + self._dense_bias)
        logits: Floats = (self._last @ inner + self._last_bias).astype("<f4", copy=False)
        return logits


def with_head(encoder: Encoder, model_dir: Path) -> Encoder:
    """The encoder, with its classification head if its checkpoint has one."""
    shape = read_encoder(model_dir)
    return Headed(encoder, shape, model_dir) if shape.embeds.classes else encoder
