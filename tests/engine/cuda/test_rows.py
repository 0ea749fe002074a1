"""Numbers in fp8 with a scale for each row: how near they are, and that a row is its own. Needs no GPU."""

import torch

from axon.engine.cuda.reference import add_norm, gated
from axon.engine.cuda.rows import FP8, LARGEST, Parts, Rows, empty_rows, quantise, round_to_fp8, widen


def test_a_row_in_fp8_is_within_a_sixteenth_of_itself_and_its_largest_number_is_exact() -> None:
    torch.manual_seed(0)
    rows = torch.randn(6, 300) * torch.tensor([1e-6, 0.01, 1.0, 30.0, 1e4, 1e9])[:, None]
    made = quantise(rows)
    assert made.values.dtype == FP8
    assert made.values.float().abs().amax(-1).tolist() == [LARGEST] * 6
    found = widen(made)
    far = (found - rows).abs() > rows.abs() / 16 + rows.abs().amax(-1, keepdim=True) * 2**-9 / LARGEST
    assert not bool(far.any())


def test_a_row_depends_on_itself_alone() -> None:
    torch.manual_seed(1)
    rows = torch.randn(5, 64)
    alone = [quantise(row[None]) for row in rows]
    together = quantise(torch.cat([rows[:2], rows[2:] * 1.0]))
    assert together.scales is not None
    for index, row in enumerate(alone):
        assert row.scales is not None
        assert torch.equal(row.values[0].float(), together.values[index].float())
        assert row.scales[0] == together.scales[index]


def test_zeros_stay_zeros_and_nothing_grows_beyond_the_largest_number() -> None:
    assert not bool(widen(quantise(torch.zeros(2, 8))).any())
    assert round_to_fp8(torch.tensor([1e6, -1e6, 460.0])).float().tolist() == [LARGEST, -LARGEST, LARGEST]


def test_a_product_is_the_sum_of_its_parts_times_the_scales_of_rows_and_outputs() -> None:
    torch.manual_seed(2)
    rows, weight = quantise(torch.randn(3, 32)), quantise(torch.randn(4, 32))
    halves = [rows.values.float()[:, part] @ weight.values.float()[:, part].T for part in (slice(16), slice(16, 32))]
    made = Parts(torch.stack(halves), 2, 12, rows.scales, weight.scales)
    assert made.is_scaled
    torch.testing.assert_close(made.whole(), widen(rows) @ widen(weight).T)
    plain = Parts(halves[0])
    assert not plain.is_scaled
    assert torch.equal(plain.whole(), halves[0])


def test_rows_of_a_buffer_share_its_memory() -> None:
    buffer = empty_rows(4, 8, FP8, torch.device("cpu"))
    first = buffer.first(2)
    assert len(first) == 2
    assert first.scales is not None
    assert first.values.data_ptr() == buffer.values.data_ptr()
    assert empty_rows(4, 8, torch.bfloat16, torch.device("cpu")).scales is None


def test_the_reference_of_a_norm_and_a_gate_is_near_the_exact_one() -> None:
    torch.manual_seed(3)
    wide, weight = torch.randn(3, 128), torch.rand(128) + 0.5
    rows, factor = add_norm(wide, weight, 1e-5)
    exact = torch.nn.functional.rms_norm(wide, (128,), weight, 1e-5)
    found = widen(rows) * factor[:, None]
    assert float((found - exact).norm() / exact.norm()) < 0.04
    matrix = torch.randn(64, 128)
    first, second = (wide @ matrix.T).chunk(2, -1)
    exact = torch.nn.functional.silu(first) * second
    found = gated(quantise(wide), quantise(matrix))
    assert float((found - exact).norm() / exact.norm()) < 0.1
    assert torch.equal(gated(Rows(wide), Rows(matrix)), exact)
