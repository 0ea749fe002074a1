"""Vectors as OpenAI's clients read them."""

import base64
import math
import struct

from axon.gateway.openai.encoders.vectors import cosine, cut, embedding_bodies

VECTOR = struct.pack("<4f", 0.5, -0.5, 0.5, 0.5)


def test_numbers_and_base64_carry_the_same_vector() -> None:
    [numbers] = embedding_bodies([VECTOR], is_base64=False)
    [coded] = embedding_bodies([VECTOR], is_base64=True)
    assert numbers == {"object": "embedding", "index": 0, "embedding": [0.5, -0.5, 0.5, 0.5]}
    assert base64.b64decode(coded["embedding"]) == VECTOR


def test_a_vector_that_is_cut_has_length_1_again() -> None:
    first, second = struct.unpack("<2f", cut(VECTOR, 2))
    assert math.isclose(first, math.sqrt(0.5), rel_tol=1e-6)
    assert second == -first


def test_a_vector_of_the_asked_size_and_one_of_zeros_stay_as_they_are() -> None:
    assert cut(VECTOR, 4) is VECTOR
    assert cut(bytes(16), 2) == bytes(8)


def test_the_cosine_does_not_depend_on_lengths() -> None:
    double, other = struct.pack("<4f", 1, -1, 1, 1), struct.pack("<4f", 1, 1, 0, 0)
    assert math.isclose(cosine(VECTOR, double), 1.0)
    assert math.isclose(cosine(VECTOR, other), 0.0, abs_tol=1e-9)
    assert cosine(VECTOR, bytes(16)) == 0.0
