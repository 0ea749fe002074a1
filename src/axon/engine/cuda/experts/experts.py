"""The MLP of a layer that is a mixture of experts: chooses the kernels' shapes by the number of rows."""

import torch

from axon.engine.cuda import tuning
from axon.engine.cuda.experts.expert_kernels import expert_down, expert_gate_up, route, router_parts, sort_pairs
from axon.engine.cuda.jit import ceil_pow2, launch
from axon.engine.cuda.rows import ExpertBiases, Parts, Rows
from axon.engine.load.architecture import Experts

_CHUNK, _LARGE_CHUNK = 1024, 4096
"""Pairs that a program sorts at once; the larger one where there are more."""
_MOST_PARTS = 8


class Mixture:
    """Mixtures of one shape; holds no weights."""

    def __init__(self, experts: Experts, dtype: torch.dtype, device: torch.device, *, pdl: bool) -> None:
        self._experts, self._dtype, self._device, self._pdl = experts, dtype, device, pdl
        self._is_exact = dtype == torch.float32
        self._precision = "ieee" if self._is_exact else "tf32"

    def compute(
        self,
        rows: torch.Tensor,
        router: torch.Tensor,
        gate_up: Rows,
        down: Rows,
        biases: ExpertBiases | None = None,
        *,
        pdl: bool,
    ) -> Parts:
        """What the chosen experts make of each row: a partial sum for each of them."""
        pdl = pdl and self._pdl
        num_rows, hidden_size = rows.shape
        per_token, inner_size = self._experts.per_token, self._experts.inner_size
        chosen, shares = self.choose(rows, router, biases.router if biases else None, pdl=pdl)
        shapes = tuning.expert_shapes(num_rows * per_token, self._experts.count, is_exact=self._is_exact)
        pairs, tiles = self.sort(chosen, shapes.gate_up.rows, pdl=pdl)
        gated = self._empty(num_rows * per_token, inner_size)
        shape = shapes.gate_up
        expert_gate_up[(-(-inner_size // shape.outputs), len(tiles))](
            rows, gate_up.values, pairs, tiles, gated, NUM_INPUTS=hidden_size, NUM_OUTPUTS=inner_size,
            LIMIT=self._experts.limit, SLOPE=self._experts.slope, bias=biases.gate_up if biases else None,
            **self._options(shape, hidden_size, inner_size), PDL=pdl, **launch(num_warps=shape.num_warps, pdl=pdl),
        )  # fmt: skip
        out, shape = self._empty(per_token, num_rows, hidden_size), shapes.down
        expert_down[(-(-hidden_size // shape.outputs), len(tiles))](
            gated, down.values, shares, pairs, tiles, out, num_rows, NUM_INPUTS=inner_size, NUM_OUTPUTS=hidden_size,
            bias=biases.down if biases else None, **self._options(shape, inner_size, hidden_size), PDL=pdl,
            **launch(num_warps=shape.num_warps, pdl=pdl),
        )  # fmt: skip
        return Parts(out, per_token, num_rows * hidden_size)

    def choose(
        self, rows: torch.Tensor, router: torch.Tensor, bias: torch.Tensor | None = None, *, pdl: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The experts of each row and their shares, both [row, experts of a row]; computed in float32."""
        experts, (num_rows, num_inputs) = self._experts, rows.shape
        width = 32 if self._is_exact else 128
        tile = 16 if num_rows <= 64 or self._is_exact else 64
        num_parts = max(1, min(_MOST_PARTS, num_inputs // (2 * width))) if num_rows <= 256 else 1
        share = -(-num_inputs // (num_parts * width)) * width
        parts = torch.empty(num_parts, num_rows, experts.count, device=self._device)
        experts_width = max(16, ceil_pow2(experts.count))
        router_parts[(num_parts, -(-num_rows // tile))](
            rows, router, parts, num_rows, NUM_INPUTS=num_inputs, NUM_EXPERTS=experts.count,
            EXPERTS_WIDTH=experts_width, ROWS=tile, WIDTH=width, SHARE=share, PRECISION=self._precision, PDL=pdl,
            **launch(num_warps=4, pdl=pdl),
        )  # fmt: skip
        chosen = torch.empty(num_rows, experts.per_token, dtype=torch.int32, device=self._device)
        shares = torch.empty(num_rows, experts.per_token, device=self._device)
        route[(num_rows,)](
            parts, chosen, shares, num_rows, NUM_EXPERTS=experts.count, EXPERTS_WIDTH=experts_width,
            PER_TOKEN=experts.per_token, CHOSEN_WIDTH=ceil_pow2(experts.per_token), NUM_PARTS=num_parts,
            NORMALISES=experts.normalises, PDL=pdl, bias=bias, **launch(num_warps=1, pdl=pdl),
        )  # fmt: skip
        return chosen, shares

    def sort(self, chosen: torch.Tensor, tile: int, *, pdl: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """The pairs [tile, place] by expert, and each tile's expert and number of pairs."""
        count, num_pairs = self._experts.count, chosen.numel()
        num_tiles = tuning.expert_tiles(num_pairs, count, tile)
        chunk = _LARGE_CHUNK if num_pairs > _LARGE_CHUNK else min(_CHUNK, max(16, ceil_pow2(num_pairs)))
        pairs = torch.empty(num_tiles, tile, dtype=torch.int32, device=self._device)
        tiles = torch.empty(num_tiles, 2, dtype=torch.int32, device=self._device)
        sort_pairs[(count + 1,)](
            chosen, pairs, tiles, num_pairs, num_tiles, NUM_EXPERTS=count, BINS=max(256, ceil_pow2(count + 1)),
            ROWS=tile, CHUNK=chunk, PDL=pdl, **launch(num_warps=8 if chunk == _LARGE_CHUNK else 4, pdl=pdl),
        )  # fmt: skip
        return pairs, tiles

    def _options(self, shape: tuning.ExpertShape, num_inputs: int, num_outputs: int) -> dict[str, object]:
        return {
            "PER_TOKEN": self._experts.per_token,
            "ROWS": shape.rows,
            "OUTPUTS": shape.outputs,
            "WIDTH": shape.width,
            "STAGES": shape.stages,
            "EVEN": num_inputs % shape.width == 0 and num_outputs % shape.outputs == 0,
            "PRECISION": self._precision,
        }

    def _empty(self, *shape: int) -> torch.Tensor:
        return torch.empty(*shape, dtype=self._dtype, device=self._device)
