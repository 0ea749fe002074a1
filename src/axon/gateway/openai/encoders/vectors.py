"""Vectors as OpenAI's embedding objects: cut to a size, as numbers or as base64. Pure; knows no request."""

import base64
import math
import sys
from array import array
from collections.abc import Sequence
from operator import mul
from typing import Any

from axon.domain.model.embeds import BYTES_PER_NUMBER


def cut(vector: bytes, dimensions: int) -> bytes:
    """Returns the first numbers of a vector, scaled to length 1, as Matryoshka models are used; a vector of this size
    stays as it is."""
    if len(vector) == BYTES_PER_NUMBER * dimensions:
        return vector
    numbers = numbers_of(vector)[:dimensions]
    length = math.sqrt(math.fsum(number * number for number in numbers))
    scaled = array("f", (number / length for number in numbers) if length else numbers)
    if sys.byteorder == "big":
        scaled.byteswap()
    return scaled.tobytes()


def embedding_bodies(vectors: Sequence[bytes], *, is_base64: bool) -> list[dict[str, Any]]:
    """Returns the embedding objects of a whole answer."""
    return [
        {
            "object": "embedding",
            "index": index,
            "embedding": base64.b64encode(vector).decode() if is_base64 else numbers_of(vector).tolist(),
        }
        for index, vector in enumerate(vectors)
    ]


def cosine(first: bytes, second: bytes) -> float:
    """Returns the cosine of two vectors, from -1 to 1; 0 if one has no length."""
    left, right = numbers_of(first), numbers_of(second)
    lengths = math.hypot(*left) * math.hypot(*right)
    return max(-1.0, min(1.0, math.fsum(map(mul, left, right)) / lengths)) if lengths else 0.0


def numbers_of(vector: bytes) -> "array[float]":
    """Returns the numbers of a vector."""
    numbers = array("f")
    numbers.frombytes(vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
