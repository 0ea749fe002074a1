"""Launch shapes of the kernels for products and attention, measured on an H200. Knows no tensors.

The tables are for models of about 8B and about 0.6B parameters; others take the nearer table, where its shapes divide.
"""

import math
from typing import NamedTuple

_WIDE = 2048
"""Hidden size from which on a model is nearer to 8B."""


class OneRow(NamedTuple):
    """Outputs and inputs of a program of ``product_kernels.one_row``."""

    rows: int
    width: int
    num_warps: int


class FewRows(NamedTuple):
    """Shape of a program of ``product_kernels.few_rows``."""

    rows: int
    outputs: int
    width: int
    num_parts: int
    stages: int
    num_warps: int


class DecodeShape(NamedTuple):
    """Shape of a program of ``decode_attention``."""

    tile: int
    num_splits: int
    stages: int
    num_warps: int
    early: bool
    described: bool = False
    """Tiles are loaded by the copy engine (TMA)."""


class ChunkShape(NamedTuple):
    """Shape of a program of ``chunk_attention``."""

    queries: int
    tile: int
    stages: int
    num_warps: int


class RunShape(NamedTuple):
    """Shape of a program of ``run_attention``."""

    width: int
    """Queries and their heads of a KV head together: ``RUN_QUERIES`` queries and more."""
    tile: int
    num_splits: int
    stages: int
    num_warps: int


class ExpertShape(NamedTuple):
    """Shape of a program of ``expert_kernels``: ``outputs`` of an expert for ``rows`` of its pairs."""

    rows: int
    outputs: int
    width: int
    stages: int
    num_warps: int


class ExpertShapes(NamedTuple):
    """The shapes of an expert's two products, which share their tiles."""

    gate_up: ExpertShape
    down: ExpertShape


class LowRankShape(NamedTuple):
    """Shape of the programs of ``low_rank_kernels``."""

    rows: int
    """Rows of one adapter that are computed together."""
    width: int
    share: int
    """Inputs that a program of the first product sums; 0: all."""
    outputs: int
    num_warps: int


_ONE_WIDE = {
    "qkv": OneRow(4, 4096, 8),
    "output": OneRow(2, 2048, 8),
    "gate_up": OneRow(1, 4096, 8),
    "down": OneRow(2, 2048, 4),
    "head": OneRow(4, 4096, 16),
}
_ONE_NARROW = {
    "qkv": OneRow(4, 1024, 4),
    "output": OneRow(1, 1024, 4),
    "gate_up": OneRow(2, 1024, 2),
    "down": OneRow(1, 1024, 4),
    "head": OneRow(8, 1024, 8),
}
_FEW_WIDE = {
    16: {
        "qkv": FewRows(16, 64, 128, 4, 3, 4),
        "output": FewRows(16, 64, 256, 2, 4, 4),
        "gate_up": FewRows(16, 64, 256, 1, 4, 4),
        "down": FewRows(16, 64, 128, 2, 6, 4),
        "head": FewRows(16, 128, 128, 1, 5, 4),
    },
    32: {
        "qkv": FewRows(32, 64, 128, 4, 3, 4),
        "output": FewRows(32, 64, 256, 2, 3, 4),
        "down": FewRows(32, 64, 256, 2, 3, 4),
        "head": FewRows(32, 128, 128, 1, 4, 4),
    },
    64: {
        "output": FewRows(64, 64, 128, 2, 5, 4),
        "gate_up": FewRows(64, 128, 128, 1, 4, 4),
        "down": FewRows(64, 64, 128, 2, 5, 4),
        "head": FewRows(64, 128, 128, 1, 4, 8),
    },
    128: {
        "output": FewRows(128, 128, 64, 4, 5, 8),
        "down": FewRows(128, 128, 64, 4, 5, 8),
    },
}
_FEW_NARROW = {
    16: {
        "qkv": FewRows(16, 64, 128, 2, 4, 4),
        "output": FewRows(16, 64, 128, 2, 4, 4),
        "gate_up": FewRows(16, 64, 128, 4, 2, 4),
        "down": FewRows(16, 64, 128, 2, 4, 4),
    },
    64: {
        "qkv": FewRows(64, 64, 128, 2, 4, 4),
        "output": FewRows(64, 64, 128, 2, 4, 4),
        "gate_up": FewRows(64, 64, 128, 1, 4, 4),
        "down": FewRows(64, 64, 128, 2, 4, 4),
    },
}


_FEW_FP8 = {
    16: {
        "qkv": FewRows(16, 64, 256, 4, 3, 4),
        "output": FewRows(16, 64, 256, 2, 5, 4),
        "gate_up": FewRows(16, 128, 256, 1, 4, 4),
        "gated": FewRows(16, 64, 256, 1, 4, 4),
        "down": FewRows(16, 64, 256, 2, 5, 4),
    },
    32: {
        "qkv": FewRows(32, 64, 256, 1, 4, 4),
        "output": FewRows(32, 64, 256, 2, 4, 4),
        "gate_up": FewRows(32, 64, 256, 1, 4, 4),
        "down": FewRows(32, 64, 256, 4, 4, 4),
    },
    64: {
        "qkv": FewRows(64, 64, 256, 1, 4, 4),
        "output": FewRows(64, 64, 256, 2, 4, 4),
        "gate_up": FewRows(64, 128, 128, 1, 5, 4),
        "down": FewRows(64, 64, 256, 2, 4, 4),
    },
    128: {
        "output": FewRows(128, 64, 256, 2, 3, 4),
        "down": FewRows(128, 128, 128, 4, 4, 8),
    },
}
"""``gated`` is ``gate_up`` with its gate, of half as many outputs."""


_FEW_PACKED = {
    16: {
        "qkv": FewRows(16, 64, 128, 2, 3, 4),
        "output": FewRows(16, 64, 128, 4, 3, 4),
        "gate_up": FewRows(16, 64, 128, 1, 3, 4),
        "down": FewRows(16, 64, 128, 4, 3, 4),
    },
    32: {
        "qkv": FewRows(32, 64, 64, 2, 4, 4),
        "output": FewRows(32, 64, 64, 4, 4, 4),
        "gate_up": FewRows(32, 64, 64, 1, 4, 4),
        "down": FewRows(32, 64, 64, 4, 4, 4),
    },
    64: {
        "qkv": FewRows(64, 128, 64, 2, 3, 8),
        "output": FewRows(64, 64, 64, 2, 3, 4),
        "gate_up": FewRows(64, 128, 64, 1, 3, 8),
        "down": FewRows(64, 64, 64, 2, 3, 4),
    },
}
"""Widths and parts are of a quarter of the inputs, of which an int16 holds four. Above 64 rows it is quicker to unpack
first: 128 rows of 8B's ``down`` took 82 us so and 261 us by any shape that unpacks on the way."""


def few_packed(name: str, num_rows: int, num_inputs: int, group_size: int) -> FewRows | None:
    """The shape for a product of rows with weights in four bits; None where it is better to unpack them first."""
    most = next((most for most in _FEW_PACKED if most >= num_rows), None)
    return fit_packed(_FEW_PACKED[most][name], num_inputs, group_size) if most else None


def fit_packed(shape: FewRows, num_inputs: int, group_size: int) -> FewRows:
    """The shape with a width and parts that divide the groups and a quarter of the inputs."""
    quarter = num_inputs // 4
    width = math.gcd(group_size, quarter, shape.width)
    parts = next(parts for parts in range(shape.num_parts, 0, -1) if quarter % (parts * width) == 0)
    return shape._replace(width=width, num_parts=parts)


def packed_shapes() -> set[FewRows]:
    """Every shape for weights in four bits."""
    return {shape for shapes in _FEW_PACKED.values() for shape in shapes.values()}


def unpacked_width(num_inputs: int, group_size: int) -> int:
    """Int16s of a row that a program of ``packed_kernels.unpack`` reads."""
    return math.gcd(group_size, num_inputs // 4, 128)


def one_row(name: str, hidden_size: int, num_outputs: int, num_inputs: int) -> OneRow | None:
    """The shape for a product of one row with ``num_outputs`` rows of weights; None if the kernel does not fit."""
    shape = (_ONE_WIDE if hidden_size >= _WIDE else _ONE_NARROW)[name]
    width = min(shape.width, num_inputs & -num_inputs)
    fits = width >= 256 and num_outputs % shape.rows == 0 and num_inputs // width <= 16
    return shape._replace(width=width) if fits else None


def few_rows(
    name: str, hidden_size: int, num_rows: int, num_outputs: int, num_inputs: int, *, fp8: bool = False
) -> FewRows | None:
    """The shape for a product of a few rows; None where cuBLAS is as fast."""
    table = _FEW_FP8 if fp8 else _FEW_WIDE if hidden_size >= _WIDE else _FEW_NARROW
    most = next((most for most in table if most >= num_rows), None)
    shape = table[most].get(name) if most else None
    fits = shape and num_inputs % (shape.num_parts * shape.width) == 0 and num_outputs >= shape.outputs
    return shape if fits else None


def most_rounded(max_rows: int) -> int:
    """The most rows, of so many, that go through the kernels with a gate and rounding in fp8."""
    return min(max_rows, max(most for most, shapes in _FEW_FP8.items() if "gated" in shapes))


_DECODES = {
    8: DecodeShape(64, 8, 2, 4, early=True),
    16: DecodeShape(64, 4, 4, 2, early=False),
    32: DecodeShape(64, 2, 5, 4, early=False),
    56: DecodeShape(64, 1, 7, 4, early=False),
    80: DecodeShape(64, 1, 4, 2, early=False),
    112: DecodeShape(64, 1, 5, 2, early=False),
}
_USUAL_DIM = 128
"""The largest head for which the stages of attention find room; a larger one has fewer."""
_MANY_DECODES = DecodeShape(64, 1, 4, 2, early=False)


def decode_shape(num_rows: int, block_size: int, *, is_exact: bool = False, dim: int = 128) -> DecodeShape:
    """Many splits of the context for few rows, so that the device is full; one for many. ``is_exact``: float32;
    ``dim``: of a head."""
    if is_exact:
        return DecodeShape(16, 4, 2, 4, early=False)
    shape = next((shape for most, shape in _DECODES.items() if num_rows <= most), _MANY_DECODES)
    stages = shape.stages if dim <= _USUAL_DIM else min(3, shape.stages)
    return shape._replace(tile=64 if block_size >= 64 else max(16, block_size), stages=stages)


def decode_counts() -> list[int]:
    """One number of rows for each distinct decode shape."""
    return [*_DECODES, max(_DECODES) + 1]


def chunk_shape(block_size: int, *, is_exact: bool = False, dim: int = 128) -> ChunkShape:
    """The shape for prompt chunks; ``is_exact``: float32, ``dim``: of a head."""
    if is_exact:
        return ChunkShape(16, 16, 2, 4)
    if dim > _USUAL_DIM:
        return ChunkShape(64, min(64, max(16, block_size)), 2, 8)
    return ChunkShape(64, min(64, max(16, block_size)), 5, 4)


RUN_QUERIES = 8
"""Rows of a run that one program of ``run_attention`` serves."""
MOST_RUN_ROWS = 256
"""The most rows of a step of short runs."""
_RUN_LADDER = (4, 8, 16, 24, 32, 48, 64, 96, 128, 192, MOST_RUN_ROWS)
_RUN_SPLITS = {8: 16, 32: 4}


def run_ladder() -> list[int]:
    """Row counts for which a step of short runs has a CUDA graph; a step takes the next larger one."""
    return list(_RUN_LADDER)


def run_shape(num_rows: int, block_size: int, group_size: int, *, is_exact: bool = False, dim: int = 128) -> RunShape:
    """Many splits of the context for few rows, so that the device is full; ``is_exact``: float32."""
    width = max(16, 1 << (RUN_QUERIES * group_size - 1).bit_length())
    splits = next((splits for most, splits in _RUN_SPLITS.items() if num_rows <= most), 1)
    if is_exact:
        return RunShape(width, 16, splits, 2, 4)
    stages = 3 if dim <= _USUAL_DIM and width <= 64 else 2
    return RunShape(width, 64 if block_size >= 64 else max(16, block_size), splits, stages, 4 if width <= 64 else 8)


def run_sizes() -> list[int]:
    """One row count for each distinct shape of runs."""
    return [*_RUN_SPLITS, MOST_RUN_ROWS]


def most_run_parts() -> int:
    """The most pairs of a run and a split in a step, each with partial sums of its own."""
    splits = {size: run_shape(size, 64, 1).num_splits for size in _RUN_LADDER}
    return max(size * each for size, each in splits.items() if each > 1)


_CHUNK_LADDER = (64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096)
_LAUNCH_FLOPS = 7e12
"""Floating point operations of the device in the time that the host needs to launch a step kernel by kernel."""


def chunk_ladder(num_weights: int, max_tokens: int) -> list[int]:
    """Token counts for which a step with prompt chunks has a CUDA graph: those computed faster than launched."""
    most = min(max_tokens, max(512, int(_LAUNCH_FLOPS / (2 * num_weights))))
    return [size for size in _CHUNK_LADDER if size <= most]


def ladder(max_rows: int) -> list[int]:
    """Row counts that have a CUDA graph; a step takes the next larger one."""
    sizes = [1, 2, 4, 8, 16, *range(24, 65, 8), *range(80, 257, 16), *range(288, max_rows + 32, 32)]
    return [size for size in sizes if size < max_rows] + [max_rows]


_EXPERTS = {
    0.25: ExpertShapes(ExpertShape(16, 64, 128, 4, 4), ExpertShape(16, 64, 256, 3, 4)),
    8: ExpertShapes(ExpertShape(16, 64, 128, 3, 8), ExpertShape(16, 128, 128, 3, 8)),
    24: ExpertShapes(ExpertShape(16, 64, 128, 3, 4), ExpertShape(16, 64, 128, 4, 4)),
    96: ExpertShapes(ExpertShape(64, 128, 64, 4, 8), ExpertShape(64, 128, 64, 4, 4)),
}
"""By the most pairs of an expert, on average; the quickest of benchmarks/expert_kernels.py, on an H200."""
_MANY_EXPERTS = ExpertShapes(ExpertShape(128, 128, 64, 4, 8), ExpertShape(128, 256, 64, 3, 8))


def expert_shapes(num_pairs: int, num_experts: int, *, is_exact: bool = False) -> ExpertShapes:
    """The shapes for so many pairs of rows and experts; ``is_exact``: float32."""
    if is_exact:
        return ExpertShapes(ExpertShape(16, 32, 32, 2, 4), ExpertShape(16, 32, 32, 2, 4))
    mean = num_pairs / num_experts
    return next((shapes for most, shapes in _EXPERTS.items() if mean <= most), _MANY_EXPERTS)


def expert_tiles(num_pairs: int, num_experts: int, rows: int) -> int:
    """The most tiles of so many rows that pairs sorted by expert can need."""
    return min(num_pairs, num_experts + num_pairs // rows)


def low_rank(*, chunks: bool, is_exact: bool = False) -> LowRankShape:
    """The shape for adapters in a step with prompt ``chunks``, or of decodes alone; ``is_exact``: float32."""
    if is_exact:
        return LowRankShape(16, 32, 0, 64, 4)
    return LowRankShape(64, 128, 0, 128, 4) if chunks else LowRankShape(16, 1024, 1024, 256, 4)
