"""Bytes that tensor parallelism sends. Functions of their arguments alone; no tensors, no processes.

For each token a rank takes part in two all-reduces a layer (behind attention and behind the MLP) and one for the
embedding; for each token that is drawn it sends its part of the logits. An all-reduce over n ranks is a reduce-scatter
and an all-gather: each rank sends 2 (n - 1) / n of the data.
"""

from axon.engine.load.architecture import Architecture


def summed_bytes(numel: int, itemsize: int, size: int) -> int:
    """Bytes a rank sends for the all-reduce of ``numel`` numbers, padded to a multiple of the group's size."""
    return 2 * (size - 1) * -(-numel // size) * itemsize


def gathered_bytes(numel: int, itemsize: int, rank: int) -> int:
    """Bytes a rank sends for a gather to the leading rank, which itself sends nothing."""
    return numel * itemsize if rank else 0


def sums_per_step(architecture: Architecture) -> int:
    """All-reduces of a step, however many tokens it has."""
    return 2 * architecture.num_layers + 1


def layer_bytes_per_token(architecture: Architecture, itemsize: int, size: int) -> float:
    """Bytes a rank sends for one token in one layer."""
    return 2 * 2 * (size - 1) / size * architecture.hidden_size * itemsize


def step_bytes(
    architecture: Architecture, itemsize: int, size: int, *, rank: int, num_rows: int, num_drawn: int
) -> int:
    """Bytes a rank sends in a step of ``num_rows`` tokens, of which ``num_drawn`` go through the head."""
    sums = sums_per_step(architecture) * summed_bytes(num_rows * architecture.hidden_size, itemsize, size)
    columns = -(-architecture.vocab_size // size)
    return sums + gathered_bytes(num_drawn * columns, itemsize, rank)
