"""Rows are their own to the last bit: products and attention over many shapes."""

import pytest
import torch

from axon.engine.batch import Batch, Span
from axon.engine.load.architecture import Architecture
from axon.engine.load.rope import Rope
from axon.engine.pytorch.attention import Attention
from axon.engine.pytorch.kv_memory import KVMemory
from axon.engine.pytorch.tiles import REFERENCE_ROWS, Linear, proven_sizes, tile


@pytest.mark.parametrize(
    ("num_inputs", "num_outputs"), [(16, 24), (48, 272), (576, 960), (576, 3072), (1536, 576), (1000, 333)]
)
def test_a_row_of_a_product_does_not_depend_on_the_number_of_rows(num_inputs: int, num_outputs: int) -> None:
    linear = Linear(torch.randn(num_outputs, num_inputs))
    sizes = proven_sizes([linear])
    assert REFERENCE_ROWS in sizes
    rows = torch.randn(200, num_inputs)

    def multiply(part: torch.Tensor) -> torch.Tensor:
        tiling = tile(len(part), sizes)
        padded = torch.cat([part, part.new_zeros(sum(tiling) - len(part), num_inputs)])
        return linear(padded, tiling)[: len(part)]

    whole = multiply(rows)
    for num_rows in [*range(1, 65), 100, 129]:
        assert torch.equal(multiply(rows[:num_rows]), whole[:num_rows])
        assert torch.equal(multiply(rows[-num_rows:]), whole[-num_rows:])


@pytest.mark.parametrize(("num_inputs", "num_outputs"), [(64, 272), (300, 80)])
def test_a_row_in_bfloat16_does_not_depend_on_them_either(num_inputs: int, num_outputs: int) -> None:
    """Rounding hides another order of a sum in all but a few of a thousand numbers: so many rows are tried."""
    generator = torch.Generator().manual_seed(7)
    linear = Linear(torch.randn(num_outputs, num_inputs, generator=generator).bfloat16())
    sizes = proven_sizes([linear])
    assert REFERENCE_ROWS in sizes
    rows = torch.randn(192, num_inputs, generator=generator).bfloat16()
    whole = linear(rows, tile(len(rows), sizes))
    for number in (1, 2, 3):
        tiling = tile(number, sizes)
        for first in range(0, len(rows) - sum(tiling), number):
            found = linear(rows[first : first + sum(tiling)], tiling)[:number]
            assert torch.equal(found, whole[first : first + number]), f"{number} rows in tiles of {tiling}"


@pytest.mark.parametrize("num_rows", [1, 2, 3, 64, 65, 500])
def test_a_tiling_covers_the_rows_with_allowed_sizes(num_rows: int) -> None:
    tiling = tile(num_rows, (2, 8, 64))
    assert num_rows <= sum(tiling) < num_rows + 64
    assert set(tiling) <= {2, 8, 64}


def make_attention(num_heads: int, num_kv_heads: int, window: int) -> Attention:
    architecture = Architecture(
        vocab_size=10,
        hidden_size=num_heads * 16,
        intermediate_size=10,
        num_layers=1,
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=16,
        rms_norm_eps=1e-5,
        rope=Rope(),
        tied_embedding=True,
        max_model_len=1000,
        eos_ids=frozenset(),
        windows=(window,),
    )
    return Attention(architecture, KVMemory(architecture, 40, 16, torch.float32))


@pytest.mark.parametrize(("num_heads", "num_kv_heads"), [(6, 2), (3, 3), (8, 1)])
@pytest.mark.parametrize("chunk", [1, 3, 32, 100])
@pytest.mark.parametrize("window", [0, 20, 150])
def test_attention_in_chunks_equals_attention_at_once_and_the_textbook(
    num_heads: int, num_kv_heads: int, chunk: int, window: int
) -> None:
    length = 300
    queries, keys, values = (torch.randn(length, heads, 16) for heads in (num_heads, num_kv_heads, num_kv_heads))

    def attend(chunk: int, block_ids: tuple[int, ...]) -> torch.Tensor:
        attention = make_attention(num_heads, num_kv_heads, window)
        parts = []
        for first in range(0, length, chunk):
            part = slice(first, min(first + chunk, length))
            num_rows = part.stop - first
            span = Span(id="a", first=first, token_ids=(0,) * num_rows, block_ids=block_ids)
            plan = attention.plan(Batch((span,)), num_rows)
            parts.append(attention(0, queries[part], keys[part], values[part], plan))
        return torch.cat(parts)

    whole = attend(length, tuple(range(19)))
    assert torch.equal(attend(chunk, tuple(range(39, 20, -1))), whole)
    query, key, value = (each.transpose(0, 1)[None] for each in (queries, keys, values))
    distance = torch.arange(length)[:, None] - torch.arange(length)
    mask = (distance >= 0) & (distance < (window or length))
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, enable_gqa=True)
    assert torch.allclose(whole, expected[0].transpose(0, 1).reshape(length, -1), atol=1e-5)
