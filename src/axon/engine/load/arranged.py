"""A family's tensors by the engine's names, whatever its files call them. Reads by ``Weights``; knows no backend."""

from collections.abc import Iterable

import torch

from axon.engine.load.architecture import Architecture
from axon.engine.load.layout import Place, is_plain, place_of
from axon.engine.load.weights import Weights


class Arranged:
    """The tensors of a model's files under the engine's names."""

    def __init__(self, weights: Weights, architecture: Architecture, device: torch.device | None = None) -> None:
        """``device``: where matrices in MXFP4 are unpacked."""
        self._weights = weights
        self._architecture = architecture
        self._device = device
        self._last: tuple[Place, torch.Tensor] | None = None
        """The expert's tensor that was read last: it holds gate and up, which are asked for one after the other."""

    def take(self, name: str) -> torch.Tensor:
        """One tensor, in the dtype that the model computes in; a norm with an offset in float32, with the offset."""
        place = place_of(name, self._architecture)
        if place.expert is not None:
            return self._expert(Place(place.name, expert=place.expert))[place.start :: place.step].contiguous()
        if place.stop:
            return self._weights.take_part(place.name, 0, place.start, place.stop)
        tensor = self._weights.take(place.name)
        offset = self._architecture.family.norm_offset
        return tensor.float() + offset if offset and name.endswith("norm.weight") else tensor

    def _expert(self, place: Place) -> torch.Tensor:
        if self._last is None or self._last[0] != place:
            assert place.expert is not None
            self._last = (place, self._weights.take_expert(place.name, place.expert, self._device))
        return self._last[1]

    def take_part(self, name: str, dim: int, start: int, stop: int) -> torch.Tensor:
        """The slice ``start`` to ``stop`` of a tensor along a dimension."""
        place = place_of(name, self._architecture)
        if place.expert is not None:
            whole = self.take(name)
            return whole[start:stop] if dim == 0 else whole[:, start:stop].contiguous()
        assert dim == 0 or not place.start, "matrices are fused along their outputs"
        return self._weights.take_part(place.name, dim, place.start + start, place.start + stop)

    def take_stacked(self, names: Iterable[str]) -> torch.Tensor:
        """Several tensors concatenated along their outputs, so that one product computes them all."""
        return torch.cat([self.take(name) for name in names])


def arranged(weights: Weights, architecture: Architecture, device: torch.device | None = None) -> Weights | Arranged:
    """The weights by the engine's names; themselves where the files have these names. ``device``: where matrices in
    MXFP4 are unpacked."""
    return weights if is_plain(architecture) else Arranged(weights, architecture, device)
