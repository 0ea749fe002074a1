"""What LoRA adapters add to the products of a step. Holds no adapter."""

import torch

from axon.engine.cuda import tuning
from axon.engine.cuda.adapters.adapter_pages import RANK, CudaAdapters
from axon.engine.cuda.adapters.low_rank_kernels import expand, shrink
from axon.engine.cuda.jit import launch
from axon.engine.cuda.rows import Parts

_MULTIPLE = 16
"""Rows of the first products are a multiple of this: the kernels are then compiled once for any number of rows."""


class Adapting:
    """What the adapters of a step's rows add to its products."""

    def __init__(self, adapters: CudaAdapters, tiles: torch.Tensor, rows: torch.Tensor, *, chunks: bool) -> None:
        self._adapters, self._tiles, self._rows = adapters, tiles, rows
        self._is_exact = adapters.pool.dtype == torch.float32
        self._shape = tuning.low_rank(chunks=chunks, is_exact=self._is_exact)

    def add(self, layer: int, product: str, inputs: torch.Tensor, outputs: Parts, *, pdl: bool) -> None:
        """Adds to a product of the layer what the rows' adapters make of its inputs."""
        place = self._adapters.places.get((layer, product))
        if place is None:
            return
        shape, pool, page_size = self._shape, self._adapters.pool, self._adapters.page_size
        num_tiles, num_modules = len(self._tiles), len(place.modules)
        num_rows = -(-len(self._rows) // _MULTIPLE) * _MULTIPLE
        share = shape.share or -(-place.num_inputs // shape.width) * shape.width
        num_parts = -(-place.num_inputs // share)
        num_pages = self._tiles.shape[1] - 2
        columns = num_modules * num_pages * RANK
        inner = torch.empty(num_parts, num_rows, columns, device=pool.device)
        common = {
            "NUM_MODULES": num_modules, "NUM_PAGES": num_pages, "RANK": RANK, "ROWS": shape.rows,
            "PRECISION": "ieee" if self._is_exact else "tf32", "PDL": pdl,
            **launch(num_warps=shape.num_warps, pdl=pdl),
        }  # fmt: skip
        shrink[(num_tiles, num_modules * num_pages, num_parts)](
            inputs, pool, page_size, place.first, self._tiles, self._rows, inner, num_rows,
            NUM_INPUTS=place.num_inputs, WIDTH=shape.width, SHARE=share, **common,
        )  # fmt: skip
        ends = (*place.ends, place.ends[-1])
        expand[(-(-place.ends[-1] // shape.outputs), num_tiles)](
            inner, pool, page_size, place.second, self._tiles, self._rows, outputs.tensor, num_rows,
            NUM_OUTPUTS=place.ends[-1], FIRST_END=ends[0], SECOND_END=ends[1], NUM_PARTS=num_parts,
            OUTPUTS=shape.outputs, **common,
        )  # fmt: skip
