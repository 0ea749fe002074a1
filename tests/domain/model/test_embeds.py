"""The facts of an embedding model that a gateway needs."""

import pytest

from axon.domain.model.embeds import CHUNK_BYTES, Embeds


@pytest.mark.parametrize("dimensions", [1, 384, 1024, 4096, 1 << 19])
def test_the_vectors_of_a_job_fit_into_one_record(dimensions: int) -> None:
    num_inputs = Embeds(dimensions=dimensions).max_inputs
    assert num_inputs == 1 or 4 * dimensions * num_inputs <= CHUNK_BYTES < 4 * dimensions * (num_inputs + 1)


def test_a_vector_is_cut_only_to_sizes_that_the_model_was_trained_for() -> None:
    assert [size for size in range(10) if Embeds(dimensions=8).allows(size)] == [8]
    assert [size for size in range(10) if Embeds(dimensions=8, shorter=(2, 4)).allows(size)] == [2, 4, 8]
    assert [size for size in range(10) if Embeds(dimensions=8, any_shorter=True).allows(size)] == list(range(1, 9))


@pytest.mark.parametrize(("max_model_len", "most"), [(512, 2048), (8192, 128), (1 << 21, 1), (0, 682)])
def test_the_pairs_of_a_job_are_bounded_by_their_tokens_too(max_model_len: int, most: int) -> None:
    dimensions = 384 if max_model_len == 0 else 1
    assert Embeds(dimensions=dimensions).max_pairs(max_model_len) == most
