"""Vectors on the wire are the numbers that the model gave."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from axon.domain.model.embeds import Embeds
from axon.gateway.grpc.embeddings import response_of, vector_of
from axon.gateway.openai.encoders.embedded import Embedded

floats = st.lists(st.floats(width=32, allow_nan=False), max_size=300)


@given(floats)
def test_a_vector_has_its_numbers(numbers: list[float]) -> None:
    assert list(vector_of(struct.pack(f"<{len(numbers)}f", *numbers)).values) == numbers


def test_the_answer_has_all_vectors_in_order_and_cut_to_size() -> None:
    packed = [struct.pack("<4f", 3, 4, 0, 0), struct.pack("<4f", 0, 1, 0, 0)]
    found = Embedded(vectors=packed, embeds=Embeds(dimensions=4), num_tokens=7, id="embd-1")
    answer = response_of("m", found, size=2)
    assert [[round(each, 6) for each in vector.values] for vector in answer.vectors] == [[0.6, 0.8], [0.0, 1.0]]
    assert (answer.id, answer.model, answer.usage.prompt_tokens) == ("embd-1", "m", 7)
