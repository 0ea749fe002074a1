"""Tensor parallelism: which part of a model each rank holds, and the sums over all ranks."""
