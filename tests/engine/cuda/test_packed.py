"""Matrices in four bits as a GPU keeps them: every number is that of the files, whichever way they pack it."""

from pathlib import Path

import pytest
import torch

from axon.engine.cuda.rows import Rows
from axon.engine.cuda.tuning import FewRows, few_packed, fit_packed, unpacked_width
from axon.engine.cuda.weights.layers import load_packed
from axon.engine.cuda.weights.packed import Packed, pack, widen
from axon.engine.cuda.weights.upload import Upload
from axon.engine.load.quantised.four_bit_layout import FourBits, read_four_bits
from axon.engine.load.weights import Weights
from tests.engine.builders import make_tiny_llama
from tests.engine.load.quantised.four_bit_files import LAYOUTS, packed, publish

CPU = torch.device("cpu")
NAMES = {
    "qkv": [f"model.layers.0.self_attn.{name}_proj.weight" for name in "qkv"],
    "down": ["model.layers.1.mlp.down_proj.weight"],
}


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_packed_matrix_stands_for_the_numbers_of_the_files(layout: str) -> None:
    torch.manual_seed(0)
    made = [packed(torch.randn(outputs, 256), layout, 3) for outputs in (32, 16, 16)]
    matrix = pack(read_four_bits(LAYOUTS[layout]), [parts for parts, _ in made])
    assert matrix is not None
    assert matrix.shape == (64, 256)
    assert matrix.numbers.shape == (64, 64)
    assert torch.equal(widen(matrix), torch.cat([meant for _, meant in made]))
    assert (matrix.order is not None) == (layout == "gptq in any order")


def test_rows_in_the_order_of_the_matrix_give_the_product(layout: str) -> None:
    torch.manual_seed(1)
    parts, meant = packed(torch.randn(16, 256), layout, 3)
    matrix = pack(read_four_bits(LAYOUTS[layout]), [parts])
    assert matrix is not None
    rows = torch.randn(3, 256)
    sorted_columns = widen(matrix) if matrix.order is None else widen(matrix)[:, matrix.order]
    torch.testing.assert_close(matrix.ordered(rows) @ sorted_columns.T, rows @ meant.T)


def test_matrices_whose_groups_are_mixed_otherwise_are_not_packed_together() -> None:
    layout = read_four_bits(LAYOUTS["gptq in any order"])
    one, other = (packed(torch.randn(16, 256), "gptq in any order", seed)[0] for seed in (1, 2))
    assert pack(layout, [one, one]) is not None
    assert pack(layout, [one, other]) is None


@pytest.mark.parametrize(("inputs", "group", "size"), [(576, 32, 16), (1024, 128, 128), (1024, 0, 256), (96, 0, 0)])
def test_groups_are_cut_where_a_quarter_of_the_inputs_ends(inputs: int, group: int, size: int) -> None:
    groups = inputs // group if group else 1
    parts = {
        "qweight": torch.randint(-(2**31), 2**31 - 1, (inputs // 8, 16)).int(),
        "qzeros": torch.randint(-(2**31), 2**31 - 1, (groups, 2)).int(),
        "scales": torch.rand(groups, 16).half(),
    }
    matrix = pack(FourBits(method="gptq", group_size=group), [parts])
    assert (matrix.group_size if matrix else 0) == size


def test_scales_that_float16_cannot_hold_are_bfloat16s() -> None:
    parts, _ = packed(torch.randn(16, 256), "awq", 0)
    parts["scales"] = (parts["scales"].float() * 1e-6).to(torch.bfloat16)
    matrix = pack(read_four_bits(LAYOUTS["awq"]), [parts])
    assert matrix is not None
    assert matrix.scale_dtype == torch.bfloat16
    assert float(widen(matrix).abs().max()) < 1e-4


def test_a_layer_keeps_the_numbers_that_its_files_have(
    tmp_path: Path, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("axon.engine.cuda.weights.upload._CHUNK_BYTES", 1000)
    folder = make_tiny_llama(
        tmp_path / "wide", hidden_size=256, intermediate_size=384, num_attention_heads=4, num_key_value_heads=2,
        head_dim=64,
    )  # fmt: skip
    meant = publish(folder, tmp_path / "four", layout)
    with torch.inference_mode(), Weights(tmp_path / "four", torch.bfloat16) as weights:
        plain = load_packed(weights, NAMES, CPU)
        with Upload(weights, CPU) as source:
            found = load_packed(source, NAMES, CPU)
            source.finish()
    for product, parts in NAMES.items():
        expected = torch.cat([meant[name] for name in parts])
        for matrix in (found[product], plain[product]):
            assert isinstance(matrix, Packed)
            assert torch.equal(widen(matrix), expected)


def test_a_matrix_that_no_kernel_takes_is_unpacked(tmp_path: Path) -> None:
    folder = make_tiny_llama(tmp_path / "odd", hidden_size=96, intermediate_size=96, head_dim=16)
    meant = publish(folder, tmp_path / "four", "gptq of one group")
    with torch.inference_mode(), Weights(tmp_path / "four", torch.bfloat16) as weights:
        [matrix] = load_packed(weights, {"down": NAMES["down"]}, CPU).values()
    assert isinstance(matrix, Rows)
    assert torch.equal(matrix.values, meant[NAMES["down"][0]].bfloat16())


def test_a_matrix_that_is_not_in_four_bits_is_left_to_others(tmp_path: Path) -> None:
    with Weights(make_tiny_llama(tmp_path), torch.bfloat16) as weights:
        assert load_packed(weights, NAMES, CPU) == {}


def test_shapes_of_products_divide_groups_and_quarters() -> None:
    for inputs, group in ((4096, 128), (14336, 128), (28672, 128), (576, 16), (11008, 64), (1536, 32)):
        for name in ("qkv", "output", "gate_up", "down"):
            for num_rows in (1, 16, 17, 32, 33, 64):
                shape = few_packed(name, num_rows, inputs, group)
                assert shape is not None
                assert inputs // 4 % (shape.num_parts * shape.width) == 0
                assert group % shape.width == 0
        assert group % unpacked_width(inputs, group) == 0
    assert few_packed("qkv", 65, 4096, 128) is None
    assert fit_packed(FewRows(16, 64, 128, 4, 3, 4), 4096, 128) == FewRows(16, 64, 128, 4, 3, 4)
