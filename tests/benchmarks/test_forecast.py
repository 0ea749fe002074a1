"""The model of tensor parallelism: what it must say whatever its constants are."""

import pytest
from benchmarks.measures.forecast import (
    EFA,
    NVLINK,
    Wire,
    forecast,
    kv_bytes_per_token,
    layer_bytes_per_token,
    weight_bytes,
)
from benchmarks.tensor_parallel import LLAMA_8B, LLAMA_70B


def test_a_70b_model_sends_the_known_number_of_bytes() -> None:
    assert layer_bytes_per_token(LLAMA_70B, 2, 8) == 4 * 7 / 8 * 8192 * 2


def test_ranks_share_the_weights_and_kv_heads_until_there_are_fewer_than_ranks() -> None:
    assert weight_bytes(LLAMA_70B, 8, 2) * 8 == weight_bytes(LLAMA_70B, 1, 2)
    assert 68e9 < weight_bytes(LLAMA_70B, 1, 2) / 2 < 71e9
    assert kv_bytes_per_token(LLAMA_70B, 8, 2) * 8 == kv_bytes_per_token(LLAMA_70B, 1, 2)
    assert kv_bytes_per_token(LLAMA_70B, 16, 2) == kv_bytes_per_token(LLAMA_70B, 8, 2)


def test_what_does_not_find_room_is_said() -> None:
    assert forecast(LLAMA_70B, 1, NVLINK, num_rows=1, context=1024) is None
    assert forecast(LLAMA_70B, 2, NVLINK, num_rows=1, context=1024)


@pytest.mark.parametrize("wire", [NVLINK, EFA])
def test_more_ranks_shorten_the_reading_and_lengthen_the_waiting(wire: Wire) -> None:
    four, eight = (forecast(LLAMA_70B, size, wire, num_rows=64, context=1024) for size in (4, 8))
    assert four
    assert eight
    assert eight.step_s - eight.sums_s < four.step_s - four.sums_s
    assert eight.sums_s > four.sums_s


def test_one_rank_of_8b_is_what_was_measured() -> None:
    """250 to 257 tokens/s for one stream, 5.8 ms a step of 64 rows at 512 tokens: within a tenth."""
    one = forecast(LLAMA_8B, 1, NVLINK, num_rows=1, context=256)
    many = forecast(LLAMA_8B, 1, NVLINK, num_rows=64, context=512)
    assert one
    assert many
    assert one.tokens_per_s == pytest.approx(250, rel=0.1)
    assert many.step_s == pytest.approx(5.8e-3, rel=0.1)
