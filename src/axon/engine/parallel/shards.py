"""A rank's own part of the weights, read from the mapped files part by part. Knows no group."""

from collections.abc import Iterable
from typing import Protocol

import torch
from torch.nn import functional

from axon.engine.load.architecture import Architecture
from axon.engine.parallel.partition import Share


class Source(Protocol):
    """Tensors by name, and parts of them; see ``axon.engine.load.weights``."""

    def take(self, name: str) -> torch.Tensor: ...
    def take_part(self, name: str, dim: int, start: int, stop: int) -> torch.Tensor: ...


class Shards:
    """Looks like the weights of a smaller model."""

    def __init__(self, weights: Source, architecture: Architecture, share: Share) -> None:
        self._weights = weights
        self._architecture = architecture
        self._share = share

    def take(self, name: str) -> torch.Tensor:
        """This rank's part of a tensor; where the vocabulary does not divide, zeros stand for what is not there."""
        cut = self._share.cut(name, self._architecture)
        if cut is None:
            return self._weights.take(name)
        part = self._weights.take_part(name, cut.dim, cut.start, cut.stop)
        missing = cut.size - (cut.stop - cut.start)
        return functional.pad(part, (0, 0, 0, missing)) if missing else part

    def take_stacked(self, names: Iterable[str]) -> torch.Tensor:
        """Several parts one below the other, so that one product serves them all."""
        return torch.cat([self.take(name) for name in names])
