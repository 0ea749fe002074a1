"""How much a GPU takes on: blocks that find room, graphs that are recorded, shapes of kernels. Needs no GPU."""

from pathlib import Path

import pytest
import torch

from axon.engine.cuda import tuning
from axon.engine.cuda.memory.kv_memory import KVBlocks, block_bytes, blocks_in
from axon.engine.cuda.rows import FP8
from axon.engine.load.architecture import read_architecture
from tests.engine.cuda.checks import make_folders


def test_blocks_fill_what_the_largest_step_and_the_fraction_leave() -> None:
    sizes = {"total_bytes": 1000, "peak_bytes": 150, "bytes_per_block": 10}
    assert blocks_in(700, fraction=0.9, **sizes) == 45
    assert blocks_in(700, fraction=1.0, **sizes) == 55
    assert blocks_in(200, fraction=0.9, **sizes) == 0


def test_the_rows_of_a_block_are_where_the_kernels_look_for_them(tmp_path: Path) -> None:
    architecture = read_architecture(make_folders(tmp_path)({}))
    kv = KVBlocks(
        architecture,
        num_blocks=3,
        block_size=4,
        num_slots=2,
        table_width=5,
        dtype=torch.float32,
        device=torch.device("cpu"),
    )
    kv.tensor[2, 1, 0, 1, 3] = 7.0
    kv.tensor[2, 1, 1, 1, 3] = 8.0
    rows = kv.tensor.view(-1, architecture.head_dim)
    key = 2 * kv.block_rows + kv.layer_row(1) + 1 * 4 + 3
    assert rows[key].tolist() == [7.0] * architecture.head_dim
    assert rows[key + architecture.num_kv_heads * 4].tolist() == [8.0] * architecture.head_dim
    assert kv.tables.tolist() == [[3] * 5] * 3, "every table starts with the spare block"
    assert not kv.described


@pytest.mark.parametrize("max_rows", [1, 2, 8, 100, 256, 300, 512])
def test_every_number_of_decodes_has_a_graph_and_the_largest_is_not_too_large(max_rows: int) -> None:
    sizes = tuning.ladder(max_rows)
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == max_rows


def test_only_steps_that_take_longer_to_launch_than_to_compute_have_a_chunk_graph() -> None:
    assert tuning.chunk_ladder(8_000_000_000, 8192)[-1] == 512
    assert tuning.chunk_ladder(600_000_000, 8192)[-1] == 4096
    assert tuning.chunk_ladder(600_000_000, 100) == [64]


@pytest.mark.parametrize("num_rows", [1, 8, 9, 16, 40, 60, 100, 300])
@pytest.mark.parametrize("block_size", [4, 16, 64, 128])
def test_a_tile_of_a_decode_is_no_larger_than_a_large_block(num_rows: int, block_size: int) -> None:
    assert tuning.decode_shape(num_rows, block_size).tile == min(64, max(16, block_size))


def test_quick_products_are_taken_only_where_they_divide() -> None:
    assert tuning.one_row("qkv", 4096, 6144, 4096) == tuning.OneRow(4, 4096, 8)
    assert tuning.one_row("down", 4096, 4096, 14336) == tuning.OneRow(2, 2048, 4)
    assert tuning.one_row("qkv", 48, 80, 48) is None
    assert tuning.few_rows("output", 4096, 8, 4096, 4096) is not None
    assert tuning.few_rows("output", 4096, 8, 4096, 4000) is None
    assert tuning.few_rows("gate_up", 4096, 100, 28672, 4096) is None


def test_keys_and_values_in_fp8_take_half_the_memory(tmp_path: Path) -> None:
    architecture = read_architecture(make_folders(tmp_path)({}))
    wide = block_bytes(architecture, 64, torch.bfloat16)
    assert block_bytes(architecture, 64, FP8) * 2 == wide


def test_products_in_fp8_have_shapes_of_their_own() -> None:
    one = tuning.few_rows("qkv", 4096, 1, 6144, 4096, fp8=True)
    assert one is not None
    assert one == tuning.few_rows("qkv", 4096, 16, 6144, 4096, fp8=True), "one row goes the way of a few"
    assert tuning.few_rows("gated", 4096, 16, 14336, 4096, fp8=True) is not None
    assert tuning.few_rows("gated", 4096, 17, 14336, 4096, fp8=True) is None
    assert tuning.few_rows("output", 576, 8, 576, 576, fp8=True) is None
    assert tuning.few_rows("gate_up", 4096, 200, 28672, 4096, fp8=True) is None
    assert tuning.most_rounded(256) == 16
    assert tuning.most_rounded(4) == 4


@pytest.mark.parametrize("num_rows", [1, 3, 64, 300, 5000])
@pytest.mark.parametrize("tile", [16, 128])
def test_pairs_find_their_tiles_however_they_are_spread_over_experts(num_rows: int, tile: int) -> None:
    for num_used in (1, 5, 32):
        counts = torch.bincount(torch.arange(num_rows * 4) % num_used, minlength=32)
        needed = int((-(-counts // tile)).sum())
        assert needed <= tuning.expert_tiles(num_rows * 4, 32, tile)


def test_both_products_of_experts_have_the_same_tiles() -> None:
    for num_pairs in (8, 2048, 10_000, 131_072):
        for is_exact in (False, True):
            shapes = tuning.expert_shapes(num_pairs, 128, is_exact=is_exact)
            assert shapes.gate_up.rows == shapes.down.rows
    assert tuning.expert_shapes(8, 128).down.rows == 16
    assert tuning.expert_shapes(131_072, 128).down.rows == 128


def test_large_heads_have_fewer_stages() -> None:
    assert tuning.decode_shape(56, 64, dim=256).stages < tuning.decode_shape(56, 64).stages
    assert tuning.chunk_shape(64, dim=256).stages < tuning.chunk_shape(64).stages


def test_programs_of_short_runs_have_room_for_their_queries_and_partial_sums() -> None:
    for group_size in (1, 3, 4, 7, 8, 16):
        for size in tuning.run_ladder():
            shape = tuning.run_shape(size, 64, group_size)
            assert shape.width >= tuning.RUN_QUERIES * group_size
            assert shape.width & (shape.width - 1) == 0
            assert shape.num_splits == 1 or size * shape.num_splits <= tuning.most_run_parts()
    assert {tuning.run_shape(size, 64, 4) for size in tuning.run_ladder()} == {
        tuning.run_shape(size, 64, 4) for size in tuning.run_sizes()
    }
