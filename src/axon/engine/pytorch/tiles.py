"""Batch-invariant products: a row's result does not depend on how many rows are computed with it.

A library may sum in a different order for a different number of rows. So rows are computed in tiles of a few fixed
sizes, and a size is used only if it was verified, on this machine with these shapes and threads, to give bitwise the
same rows as the reference size. The order of a sum depends on shapes alone, so a test with a few rows decides for all,
provided that another order shows in them: rounding to bfloat16 hides it in nearly every random row.
"""

import math
from collections.abc import Iterable
from typing import Self

import torch

from axon.engine.pytorch.product import make_product

REFERENCE_ROWS = 8
_CANDIDATE_ROWS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_NUM_PAIRS = 8
_CANCELLED = 1 << 20
"""How many times larger than a usual sum two products are that cancel each other; float32 keeps 24 bits."""


class Tiling(tuple[int, ...]):
    """Sizes of a step's tiles in rows, in order."""

    proven: tuple[int, ...]
    """The sizes that tiles may have; none: any."""

    def __new__(cls, sizes: Iterable[int], proven: tuple[int, ...] = ()) -> Self:
        tiling = super().__new__(cls, sizes)
        tiling.proven = proven
        return tiling

    def of(self, num_rows: int) -> "Tiling":
        """A tiling of another number of rows, by the same proven sizes."""
        return tile(num_rows, self.proven) if self.proven else Tiling((num_rows,))


class Linear:
    """A matrix product without bias, computed tile by tile."""

    def __init__(self, weight: torch.Tensor) -> None:
        self.num_outputs, self.num_inputs = weight.shape
        self.dtype = weight.dtype
        self._product = make_product(weight)

    def __call__(self, rows: torch.Tensor, tiling: Tiling) -> torch.Tensor:
        """Multiplies exactly as many rows as the tiling has."""
        if len(tiling) == 1:
            return self._product(rows)
        return torch.cat([self._product(part) for part in torch.split(rows, list(tiling))])


def proven_sizes(linears: Iterable[Linear]) -> tuple[int, ...]:
    """The tile sizes, smallest first, that give every linear the same rows as the reference size."""
    by_shape = {(linear.num_outputs, linear.num_inputs, linear.dtype): linear for linear in linears}
    proven = [_sizes_like_reference(linear) for linear in by_shape.values()]
    return tuple(size for size in _CANDIDATE_ROWS if all(size in sizes for sizes in proven))


def tile(num_rows: int, sizes: tuple[int, ...]) -> Tiling:
    """Covers at least ``num_rows`` rows: the largest size as often as it fits, then the smallest that fits the rest."""
    num_largest, rest = divmod(num_rows, sizes[-1])
    tail = [next(size for size in sizes if size >= rest)] if rest else []
    return Tiling((*[sizes[-1]] * num_largest, *tail), sizes)


def _sizes_like_reference(linear: Linear) -> set[int]:
    """Compares each size with the reference size, in whose tiles the same rows stand at other places."""
    largest = _CANDIDATE_ROWS[-1]
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(largest, linear.num_inputs, generator=generator)
    if linear.dtype != torch.float32:
        _cancel_pairs(rows, linear, generator)
    rows = rows.to(linear.dtype)
    expected = linear(rows.flip(0), Tiling((REFERENCE_ROWS,) * (largest // REFERENCE_ROWS))).flip(0)

    def is_like_reference(size: int) -> bool:
        num_tiles = max(1, REFERENCE_ROWS // size)
        found = linear(rows[: num_tiles * size], Tiling((size,) * num_tiles))
        return torch.equal(found, expected[: num_tiles * size])

    return {size for size in _CANDIDATE_ROWS if is_like_reference(size)}


def _cancel_pairs(rows: torch.Tensor, linear: Linear, generator: torch.Generator) -> None:
    """Gives each row two large numbers whose products cancel each other exactly in one of the outputs.

    What is added between the two loses its low bits, so the order of the sum shows in all bits of that output.
    """
    num_pairs = min(_NUM_PAIRS, linear.num_inputs // 2)
    places = torch.randperm(linear.num_inputs, generator=generator)[: 2 * num_pairs]
    units = torch.zeros(2 * _NUM_PAIRS, linear.num_inputs, dtype=linear.dtype)
    units[range(len(places)), places] = 1
    weights = linear(units, Tiling((REFERENCE_ROWS,) * (len(units) // REFERENCE_ROWS))).float()
    for index, output in enumerate(torch.linspace(0, linear.num_outputs - 1, len(rows)).long().tolist()):
        first = 2 * (index % num_pairs)
        one, other = weights[first, output].item(), weights[first + 1, output].item()
        if one and other:
            usual = math.sqrt(linear.num_inputs) * max(abs(one), abs(other))
            scale = 2.0 ** round(math.log2(_CANCELLED * usual / abs(one * other)))
            rows[index, places[first]], rows[index, places[first + 1]] = other * scale, -one * scale
