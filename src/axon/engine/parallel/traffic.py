"""What tensor parallelism says over the wire, in bytes, and what that costs. Pure: knows no tensors and no processes.

A rank sends for each token two sums a layer (behind attention and behind the MLP) and one for the embedding, and for
each token that is drawn its part of the logits. A sum over n ranks is a scatter and a gather: 2 (n - 1) / n of it.
"""

from axon.engine.load.architecture import Architecture


def summed_bytes(numel: int, itemsize: int, size: int) -> int:
    """What a rank sends for the sum of so many numbers, filled up to a multiple of the group's size."""
    return 2 * (size - 1) * -(-numel // size) * itemsize


def gathered_bytes(numel: int, itemsize: int, rank: int) -> int:
    """What a rank sends so that the leading one has all parts; that one sends nothing."""
    return numel * itemsize if rank else 0


def sums_per_step(architecture: Architecture) -> int:
    """However many tokens a step has."""
    return 2 * architecture.num_layers + 1


def layer_bytes_per_token(architecture: Architecture, itemsize: int, size: int) -> float:
    """What a rank sends for one token in one layer."""
    return 2 * 2 * (size - 1) / size * architecture.hidden_size * itemsize


def step_bytes(
    architecture: Architecture, itemsize: int, size: int, *, rank: int, num_rows: int, num_drawn: int
) -> int:
    """What a rank sends in a step of ``num_rows`` tokens, of which ``num_drawn`` go through the head."""
    sums = sums_per_step(architecture) * summed_bytes(num_rows * architecture.hidden_size, itemsize, size)
    columns = -(-architecture.vocab_size // size)
    return sums + gathered_bytes(num_drawn * columns, itemsize, rank)
