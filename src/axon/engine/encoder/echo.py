"""An encoder without a model: vectors from a hash of the token ids, for tests of everything above. Knows no torch."""

import hashlib
import math
import os
import struct
import time
from array import array
from collections.abc import Sequence

from axon.engine.config import EngineConfig

_VOCAB_SIZE = 258
POISON = (255, 255, 255)
"""An input with these ids in a row kills the process that computes it, as it kills the echo engine's."""
_POISON_EXIT_CODE = 13
_DEFAULT_MODEL_LEN = 512
_LOGIT = 8192.0
"""Numbers from -32767.5 to 32767.5 are divided by it, to be logits."""


class EchoEncoder:
    """Equal inputs have equal vectors of length 1, and others have other vectors; with classes, logits from -4 to 4."""

    kernel = "echo-encoder"
    vocab_size = _VOCAB_SIZE

    def __init__(self, config: EngineConfig) -> None:
        self.dimensions, self._step_s = config.echo_dimensions or config.echo_classes, config.echo_step_s
        self._has_classes = not config.echo_dimensions
        self.max_model_len = config.max_model_len or _DEFAULT_MODEL_LEN

    def encode(self, batch: Sequence[Sequence[int]], second_starts: Sequence[int] = ()) -> list[bytes]:
        """The vectors of the inputs; that of a pair depends on where its second text begins."""
        if self._step_s:
            time.sleep(self._step_s)
        starts = second_starts or [0] * len(batch)
        return [self._vector(token_ids, start) for token_ids, start in zip(batch, starts, strict=True)]

    def _vector(self, token_ids: Sequence[int], second_start: int) -> bytes:
        if any(tuple(token_ids[index : index + 3]) == POISON for index in range(len(token_ids) - 2)):
            os._exit(_POISON_EXIT_CODE)
        seed = hashlib.sha256(array("i", [*token_ids, second_start] if second_start else token_ids).tobytes()).digest()
        raw = hashlib.shake_128(seed).digest(2 * self.dimensions)
        numbers = [number - 32767.5 for number in struct.unpack(f"<{self.dimensions}H", raw)]
        length = _LOGIT if self._has_classes else math.sqrt(sum(number * number for number in numbers))
        return struct.pack(f"<{self.dimensions}f", *(number / length for number in numbers))
