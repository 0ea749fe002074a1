"""A matrix product with a weight prepacked for oneDNN (MKL-DNN). The only file that names torch's private operators.

oneDNN repacks a plain weight at every call, which at few rows costs more than the product itself: a decode step of
SmolLM2-135M takes 61 ms prepacked against 80 ms plain (one row, float32, two Neoverse-N1 cores). Where the operators
are missing or fail, a plain product gives the same results.
"""

from collections.abc import Callable

import torch

Product = Callable[[torch.Tensor], torch.Tensor]

_TYPICAL_ROWS = 8


def make_product(weight: torch.Tensor) -> Product:
    """The function that multiplies rows [rows, inputs] by the transpose of ``weight`` [outputs, inputs]."""
    return _make_packed(weight) or _make_plain(weight)


def _make_packed(weight: torch.Tensor) -> Product | None:
    if weight.dtype != torch.float32 or not torch._C._has_mkldnn:
        return None
    try:
        multiply = torch.ops.mkldnn._linear_pointwise
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, _TYPICAL_ROWS)
        multiply(weight[:1], packed, None, "none", [], "")
    except (AttributeError, NotImplementedError, RuntimeError):
        return None

    def product(rows: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = multiply(rows, packed, None, "none", [], "")
        return output

    return product


def _make_plain(weight: torch.Tensor) -> Product:
    # [inputs, outputs] in memory: the other layout is slower, and for some shapes its sums depend on the row count.
    transposed = weight.t().contiguous()
    return lambda rows: torch.mm(rows, transposed)
