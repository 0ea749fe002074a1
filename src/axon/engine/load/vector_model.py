"""The models that give vectors and no text: encoders, classifiers and pooled decoders. Knows no tensors' values."""

import math
from pathlib import Path

from axon.engine.load.encoder import Encoder, check_encoder, is_encoder, read_encoder
from axon.engine.load.pooled_decoder import (
    PooledDecoder,
    check_pooled_decoder,
    is_pooled_decoder,
    read_pooled_decoder,
)

VectorModel = Encoder | PooledDecoder
_BYTES = {"float32": 4.0, "bfloat16": 2.0, "int8": 1.25}
"""Bytes of a number, with what belongs to it."""


def gives_vectors(model_dir: Path) -> bool:
    """Whether the folder's model gives vectors: by its model type, or by a modules.json that pools a decoder."""
    return is_encoder(model_dir) or is_pooled_decoder(model_dir)


def read_vector_model(model_dir: Path) -> VectorModel:
    """The shape of such a model, and how it is asked; raises Misconfigured."""
    return read_encoder(model_dir) if is_encoder(model_dir) else read_pooled_decoder(model_dir)


def check_vector_model(model_dir: Path, model: VectorModel) -> None:
    """Raises Misconfigured unless the folder has every tensor that the model needs, in its shape."""
    if isinstance(model, Encoder):
        check_encoder(model_dir, model)
    else:
        check_pooled_decoder(model_dir, model)


def weight_bytes(model: VectorModel, dtype: str) -> int:
    """Bytes of the model's weights in an arithmetic; ``auto`` is that of a CPU. In int8 the tables stay in float32."""
    each = _BYTES.get(dtype, _BYTES["float32"])
    table = _BYTES["float32"] if dtype == "int8" else each
    shapes = model.tensor_shapes().items()
    return int(sum(math.prod(shape) * (table if "embeddings." in name else each) for name, shape in shapes))
