"""A rank's part of the weights, read slice by slice from the mapped files. Knows no group."""

from collections.abc import Iterable
from typing import Protocol

import torch
from torch.nn import functional

from axon.engine.load.architecture import Architecture
from axon.engine.parallel.partition import Share, is_added_once


class Source(Protocol):
    """Tensors by name, and parts of them; see ``axon.engine.load.weights``."""

    def take(self, name: str) -> torch.Tensor: ...
    def take_part(self, name: str, dim: int, start: int, stop: int) -> torch.Tensor: ...


class Shards:
    """A rank's slices with the interface of whole weights, as if of a smaller model."""

    def __init__(self, weights: Source, architecture: Architecture, share: Share) -> None:
        self._weights = weights
        self._architecture = architecture
        self._share = share

    def take(self, name: str) -> torch.Tensor:
        """This rank's slice of a tensor; padded with zeros where the vocabulary does not divide."""
        cut = self._share.cut(name, self._architecture)
        if cut is None:
            whole = self._weights.take(name)
            return torch.zeros_like(whole) if is_added_once(name) and not self._share.leads else whole
        part = self._weights.take_part(name, cut.dim, cut.start, cut.stop)
        missing = cut.size - (cut.stop - cut.start)
        return functional.pad(part, (0, 0, 0, missing)) if missing else part

    def take_fp8(self, names: Iterable[str]) -> None:
        """Nothing: ranks widen their slices, and round them once more."""

    def take_four_bits(self, names: Iterable[str]) -> None:
        """Nothing: ranks unpack their slices."""

    def take_stacked(self, names: Iterable[str]) -> torch.Tensor:
        """Several slices concatenated along their outputs, so that one product computes them all."""
        return torch.cat([self.take(name) for name in names])
