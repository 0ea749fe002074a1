"""Matrix products of rows with weights: chooses the kernel by the number of rows. Holds no weights.

One row goes through ``one_row``, a few through ``few_rows``, more through cuBLAS. In fp8 one row is a few, and the
products leave out the scales; see ``rows``. Weights in four bits are unpacked on the way: see ``packed_products``.
"""

from collections.abc import Mapping

import torch
from torch.nn import functional
from triton.tools.tensor_descriptor import TensorDescriptor

from axon.engine.cuda import tuning
from axon.engine.cuda.jit import launch
from axon.engine.cuda.products.packed_products import PackedProducts
from axon.engine.cuda.products.product_kernels import few_rows, few_rows_gated, one_row
from axon.engine.cuda.rows import Parts, Rows
from axon.engine.cuda.weights.layers import Matrix
from axon.engine.cuda.weights.packed import Packed

_AHEAD_BYTES = 512


class Products:
    """Products of a model with this hidden size."""

    def __init__(self, hidden_size: int, dtype: torch.dtype, device: torch.device, *, eps: float, pdl: bool) -> None:
        self._hidden_size, self._dtype, self._device = hidden_size, dtype, device
        self._eps, self._pdl = eps, pdl
        self._one = torch.ones((), device=device)
        self.packed = PackedProducts(dtype, pdl=pdl)

    def product(self, name: str, rows: Rows, weight: Matrix) -> Parts:
        """The product of a step of decodes."""
        if isinstance(weight, Packed):
            return self.packed.product(name, rows.values, weight)
        num_rows, (num_outputs, num_inputs) = len(rows), weight.values.shape
        is_fp8 = weight.scales is not None
        shape = None
        if name == "head" and num_rows == 1 and self.takes_one_row({name: weight}):
            logits = torch.empty(1, num_outputs, dtype=self._dtype, device=self._device)
            self.one_row(name, rows.values, weight, logits)
            return Parts(logits)
        if self._pdl and self._dtype == torch.bfloat16:
            shape = tuning.few_rows(name, self._hidden_size, num_rows, num_outputs, num_inputs, fp8=is_fp8)
        if shape is None:
            return self.plain(rows, weight)
        dtype = torch.float32 if shape.num_parts > 1 else self._dtype
        out = torch.empty(shape.num_parts, num_rows, num_outputs, dtype=dtype, device=self._device)
        scales = torch.empty(num_rows, device=self._device) if rows.largest is not None else rows.scales
        self.few_rows(rows, weight.values, out, scales, shape)
        return Parts(out, shape.num_parts, num_rows * num_outputs, scales, weight.scales)

    def plain(self, rows: Rows, weight: Matrix) -> Parts:
        """The product in one part: by cuBLAS, or with weights in four bits."""
        if isinstance(weight, Packed):
            return self.packed.product("", rows.values, weight)
        if weight.scales is None:
            return Parts(functional.linear(rows.values, weight.values))
        product = torch._scaled_mm(
            rows.values, weight.values.t(), self._one, self._one, out_dtype=self._dtype, use_fast_accum=True
        )
        return Parts(product, 1, 0, rows.scales, weight.scales)

    def few_rows(
        self,
        rows: Rows,
        weight: torch.Tensor,
        out: torch.Tensor,
        scales: torch.Tensor | None,
        shape: tuning.FewRows,
    ) -> None:
        """Writes the partial sums of the product of a few rows; and their scales, if it rounds them."""
        x, largest, num_rows, (num_outputs, num_inputs) = rows.values, rows.largest, len(rows), weight.shape
        grid = (-(-num_outputs // shape.outputs), shape.num_parts, -(-num_rows // shape.rows))
        few_rows[grid](
            TensorDescriptor.from_tensor(x, [shape.rows, shape.width]),
            TensorDescriptor.from_tensor(weight, [shape.outputs, shape.width]),
            weight, out, x if largest is None else largest, x if scales is None else scales, num_rows, num_outputs,
            NUM_INPUTS=num_inputs, ROWS=shape.rows, OUTPUTS=shape.outputs, WIDTH=shape.width,
            NUM_PARTS=shape.num_parts, STAGES=shape.stages, AHEAD=_AHEAD_BYTES // weight.itemsize,
            LINE=128 // weight.itemsize, ROUNDS=0 if largest is None else largest.shape[1], PDL=True,
            **launch(num_warps=shape.num_warps, pdl=True),
        )  # fmt: skip

    def gated(self, rows: Rows, weight: Matrix, out: Rows, shape: tuning.FewRows | None = None) -> None:
        """Writes the gate of a product of a few rows in fp8, unrounded, and the largest number of each row."""
        assert isinstance(weight, Rows), "asked before"
        num_rows, num_outputs, num_inputs = len(rows), out.values.shape[1], weight.values.shape[1]
        shape = shape or tuning.few_rows("gated", self._hidden_size, num_rows, num_outputs, num_inputs, fp8=True)
        assert shape is not None, "asked before"
        few_rows_gated[(num_outputs // shape.outputs, -(-num_rows // shape.rows))](
            TensorDescriptor.from_tensor(rows.values, [shape.rows, shape.width]),
            TensorDescriptor.from_tensor(weight.values, [shape.outputs, shape.width]),
            weight.values, rows.scales, weight.scales, out.values, out.largest, num_rows, num_outputs,
            NUM_INPUTS=num_inputs, ROWS=shape.rows, OUTPUTS=shape.outputs, WIDTH=shape.width, STAGES=shape.stages,
            AHEAD=_AHEAD_BYTES, LINE=128, PDL=True, **launch(num_warps=shape.num_warps, pdl=True),
        )  # fmt: skip

    def rounds(self, num_rows: int, gate_up: Matrix, output: Matrix, down: Matrix) -> bool:
        """Whether so many rows go through kernels that gate and round them to fp8 on the way."""
        if not self._pdl or isinstance(gate_up, Packed) or gate_up.scales is None:
            return False
        weights = {"gated": gate_up, "output": output, "down": down}
        shapes = {name: weight.shape for name, weight in weights.items()}
        shapes["gated"] = (shapes["gated"][0] // 2, shapes["gated"][1])
        size = self._hidden_size
        found = {name: tuning.few_rows(name, size, num_rows, *each, fp8=True) for name, each in shapes.items()}
        gated = found["gated"]
        return all(found.values()) and gated is not None and shapes["gated"][0] % gated.outputs == 0

    def one_row(
        self,
        name: str,
        x: torch.Tensor,
        matrix: Matrix,
        out: torch.Tensor,
        *,
        norm: torch.Tensor | None = None,
        residual: torch.Tensor | None = None,
        gated: bool = False,
    ) -> None:
        """Writes the product of one row, whose norm, residual or gate is fused in."""
        assert isinstance(matrix, Rows), "asked before"
        weight = matrix.values
        num_outputs, num_inputs = weight.shape[0] // (2 if gated else 1), weight.shape[1]
        shape = tuning.one_row(name, self._hidden_size, num_outputs, num_inputs)
        assert shape is not None, "asked before"
        one_row[(num_outputs // shape.rows,)](
            x, weight if norm is None else norm, weight, x if residual is None else residual, out,
            num_outputs, self._eps,
            NUM_INPUTS=num_inputs, ROWS=shape.rows, WIDTH=shape.width, NORM=norm is not None,
            RESIDUAL=residual is not None, GATE=gated, PDL=self._pdl,
            **launch(num_warps=shape.num_warps, pdl=self._pdl),
        )  # fmt: skip

    def takes_one_row(self, weights: Mapping[str, Matrix]) -> bool:
        """Whether one row can go through ``one_row`` in all of these products."""
        return all(
            isinstance(weight, Rows)
            and weight.scales is None
            and tuning.one_row(
                name,
                self._hidden_size,
                weight.values.shape[0] // (2 if name == "gate_up" else 1),
                weight.values.shape[1],
            )
            for name, weight in weights.items()
        )
