"""The buffers that steps of decodes and of short runs write, at fixed addresses so that a CUDA graph can hold them."""

import torch

from axon.engine.cuda import tuning
from axon.engine.cuda.rows import FP8, empty_rows
from axon.engine.load.architecture import Architecture


class Scratch:
    """Activations and partial sums of up to ``max_rows`` decodes, and of as many rows of runs as a step may have; with
    ``fp8`` the rows that products read are fp8."""

    def __init__(
        self, model: Architecture, max_rows: int, dtype: torch.dtype, device: torch.device, *, fp8: bool = False
    ) -> None:
        def empty(*shape: int, dtype: torch.dtype = dtype) -> torch.Tensor:
            return torch.empty(*shape, dtype=dtype, device=device)

        max_rows = max(max_rows, tuning.MOST_RUN_ROWS)
        heads = model.num_heads * model.head_dim
        self.residual = empty(max_rows, model.hidden_size)
        rows_dtype = FP8 if fp8 else dtype
        self.normed = empty_rows(max_rows, model.hidden_size, rows_dtype, device)
        self.last_normed = empty_rows(max_rows, model.hidden_size, dtype, device) if fp8 else self.normed
        """What the head reads."""
        self.seen = empty(max_rows, heads)
        self.seen_rows = empty_rows(max_rows, heads, rows_dtype, device) if fp8 else None
        self.gated = empty_rows(max_rows, model.intermediate_size, rows_dtype, device)
        self.seen_largest = torch.zeros(max_rows, model.num_kv_heads, device=device)
        self.gated_largest = torch.zeros(max_rows, 1, device=device)
        most = tuning.most_rounded(max_rows) if fp8 else 0
        self.gated_wide = empty(most, model.intermediate_size)
        """What a gate gives, where the product that reads it rounds it; and the largest numbers of its rows above."""
        self.qkv = empty(1, heads + 2 * model.num_kv_heads * model.head_dim)
        self.logits = empty(1, model.vocab_size)
        num_splits = max(
            rows * shape.num_splits
            for rows in range(1, max_rows + 1)
            for is_exact in (False, True)
            if (shape := tuning.decode_shape(rows, 64, is_exact=is_exact)).num_splits > 1
        )
        self.part_sums = empty(num_splits * heads, dtype=torch.float32)
        self.part_logs = empty(num_splits * model.num_heads, dtype=torch.float32)
        run_width = tuning.run_shape(1, 64, model.group_size).width
        run_parts = tuning.most_run_parts() * model.num_kv_heads * run_width
        self.run_sums = empty(run_parts * model.head_dim, dtype=torch.float32)
        self.run_logs = empty(run_parts, dtype=torch.float32)
        self.arrivals = torch.zeros(max_rows * model.num_kv_heads, dtype=torch.int32, device=device)
