"""Bytes that tensor parallelism sends. Functions of their arguments alone; no tensors, no processes.

For each token a rank takes part in two all-reduces a layer (behind attention and behind the MLP) and one for the
embedding; for each token that is drawn it sends its part of the logits. An all-reduce over n ranks is a reduce-scatter
and an all-gather: each rank sends 2 (n - 1) / n of the data.
"""


def summed_bytes(numel: int, itemsize: int, size: int) -> int:
    """Bytes a rank sends for the all-reduce of ``numel`` numbers, padded to a multiple of the group's size."""
    return 2 * (size - 1) * -(-numel // size) * itemsize


def gathered_bytes(numel: int, itemsize: int, rank: int) -> int:
    """Bytes a rank sends for a gather to the leading rank, which itself sends nothing."""
    return numel * itemsize if rank else 0
