"""Products of rows with weights in four bits: chooses between unpacking on the way and before. Holds no weights."""

import torch
from torch.nn import functional
from triton.tools.tensor_descriptor import TensorDescriptor

from axon.engine.cuda import tuning
from axon.engine.cuda.jit import launch
from axon.engine.cuda.products.packed_kernels import few_rows_packed, unpack
from axon.engine.cuda.rows import Parts
from axon.engine.cuda.weights.packed import Packed

_WHOLE = "gate_up"
"""The product whose shapes have one part: those of a product that must be whole."""
_UNPACKED_OUTPUTS = 32


class PackedProducts:
    """Products of bfloat16 rows, on a device with a copy engine (TMA)."""

    def __init__(self, dtype: torch.dtype, *, pdl: bool) -> None:
        self._dtype, self._pdl = dtype, pdl

    def product(self, name: str, x: torch.Tensor, weight: Packed) -> Parts:
        """The product of rows; without a name it is whole, else it may be in parts."""
        (num_outputs, num_inputs), num_rows = weight.shape, len(x)
        shape = tuning.few_packed(name or _WHOLE, num_rows, num_inputs, weight.group_size) if self._pdl else None
        x = weight.ordered(x)
        if shape is None:
            return Parts(functional.linear(x, self.unpacked(weight)))
        if not name:
            shape = shape._replace(num_parts=1)
        dtype = torch.float32 if shape.num_parts > 1 else self._dtype
        out = torch.empty(shape.num_parts, num_rows, num_outputs, dtype=dtype, device=x.device)
        self.few_rows(x, weight, out, shape)
        return Parts(out if name else out[0], shape.num_parts, num_rows * num_outputs)

    def few_rows(self, x: torch.Tensor, weight: Packed, out: torch.Tensor, shape: tuning.FewRows) -> None:
        """Writes the partial sums of the product of rows, whose columns are in the weights' order."""
        (num_outputs, num_inputs), num_rows = weight.shape, len(x)
        grid = (-(-num_outputs // shape.outputs), shape.num_parts, -(-num_rows // shape.rows))
        few_rows_packed[grid](
            TensorDescriptor.from_tensor(x, [shape.rows, shape.width]),
            TensorDescriptor.from_tensor(weight.numbers, [shape.outputs, shape.width]),
            TensorDescriptor.from_tensor(weight.steps, [1, shape.outputs]),
            out, num_rows, num_outputs, NUM_INPUTS=num_inputs, GROUP=weight.group_size,
            FLOAT16=weight.scale_dtype == torch.float16, ROWS=shape.rows, OUTPUTS=shape.outputs, WIDTH=shape.width,
            NUM_PARTS=shape.num_parts, STAGES=shape.stages, ASM=self._dtype == torch.bfloat16, PDL=self._pdl,
            **launch(num_warps=shape.num_warps, pdl=self._pdl),
        )  # fmt: skip

    def unpacked(self, weight: Packed) -> torch.Tensor:
        """The matrix [output, input] in the rows' type, with its columns in the weights' order."""
        num_outputs, num_inputs = weight.shape
        out = torch.empty(num_outputs, num_inputs, dtype=self._dtype, device=weight.numbers.device)
        width = tuning.unpacked_width(num_inputs, weight.group_size)
        unpack[(-(-num_outputs // _UNPACKED_OUTPUTS), num_inputs // 4 // width)](
            weight.numbers, weight.steps, out, num_outputs, NUM_INPUTS=num_inputs, GROUP=weight.group_size,
            FLOAT16=weight.scale_dtype == torch.float16, OUTPUTS=_UNPACKED_OUTPUTS, WIDTH=width, **launch(num_warps=4),
        )  # fmt: skip
        return out
