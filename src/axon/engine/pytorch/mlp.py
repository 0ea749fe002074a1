"""The MLP of a decoder layer in PyTorch: a plain one, or a mixture of experts. Knows no attention and no sequences."""

import math
from collections.abc import Callable, Iterable
from typing import Protocol

import torch
from torch.nn import functional

from axon.engine.load.architecture import Architecture, Experts
from axon.engine.pytorch.tiles import Linear, Tiling

Product = Callable[[str, Linear, torch.Tensor], torch.Tensor]
"""Computes the product of this name, ``gate_up`` or ``down``, with what adapters add to it."""


class Tensors(Protocol):
    """The tensors of a model by name."""

    def take(self, name: str) -> torch.Tensor: ...
    def take_stacked(self, names: Iterable[str]) -> torch.Tensor: ...


def silu(gate: torch.Tensor) -> torch.Tensor:
    """x · sigmoid(x). Not F.silu: its vector and scalar paths differ in the last bit, and the row count decides
    between them."""
    return gate / (1 + torch.exp(-gate))


def gelu_tanh(gate: torch.Tensor) -> torch.Tensor:
    """GELU by its approximation with tanh, written as x · sigmoid(2u) for the reason that ``silu`` gives."""
    twice = 2 * math.sqrt(2 / math.pi) * (gate + 0.044715 * gate * gate * gate)
    return gate / (1 + torch.exp(-twice))


ACTIVATIONS = {"silu": silu, "gelu_pytorch_tanh": gelu_tanh}
"""The activations of gates, as config.json names them."""


class GatedMlp:
    """SwiGLU or GeGLU; gate and up are stacked, so that one product computes them together."""

    def __init__(self, weights: Tensors, prefix: str, activation: str) -> None:
        self._activation = ACTIVATIONS[activation]
        self._gate_up = Linear(weights.take_stacked([f"{prefix}.{name}_proj.weight" for name in ("gate", "up")]))
        self._down = Linear(weights.take(f"{prefix}.down_proj.weight"))

    @property
    def linears(self) -> list[Linear]:
        return [self._gate_up, self._down]

    def __call__(self, rows: torch.Tensor, tiling: Tiling, product: Product | None = None) -> torch.Tensor:
        product = product or (lambda _, linear, inputs: linear(inputs, tiling))
        gate, up = product("gate_up", self._gate_up, rows).chunk(2, dim=1)
        return product("down", self._down, self._activation(gate) * up)


class ExpertsMlp:
    """A router chooses a few experts for each row; the rows of each expert are computed together.

    The router computes in float32. A row's experts are added up in the order of their numbers, so that the row does not
    depend on the others of its batch. No adapter changes an expert.
    """

    def __init__(self, experts: Experts, weights: Tensors, prefix: str, activation: str) -> None:
        self._shape = experts
        self._router = Linear(weights.take(f"{prefix}.gate.weight").float())
        self._experts = [GatedMlp(weights, f"{prefix}.experts.{index}", activation) for index in range(experts.count)]

    @property
    def linears(self) -> list[Linear]:
        return [self._router, *(linear for expert in self._experts for linear in expert.linears)]

    def __call__(self, rows: torch.Tensor, tiling: Tiling, _product: Product | None = None) -> torch.Tensor:
        weights, chosen = self._route(rows, tiling)
        total = torch.zeros_like(rows)
        for index in sorted(set(chosen.flatten().tolist())):
            found, places = torch.where(chosen == index)
            part = tiling.of(len(found))
            padded = functional.pad(found, (0, sum(part) - len(found)))
            output = self._experts[index](rows[padded], part)[: len(found)]
            total.index_add_(0, found, output * weights[found, places, None])
        return total

    def _route(self, rows: torch.Tensor, tiling: Tiling) -> tuple[torch.Tensor, torch.Tensor]:
        """The weights of each row's experts and their numbers, both [row, experts per token]."""
        logits = self._router(rows.float(), tiling)
        likely = torch.exp(logits - logits.amax(-1, keepdim=True))
        weights, chosen = torch.topk(likely, self._shape.per_token, dim=-1)
        # A sum over the chosen scales them to 1; one over all makes probabilities.
        total = (weights if self._shape.normalises else likely).sum(-1, keepdim=True)
        return (weights / total).to(rows.dtype), chosen


def load_mlp(architecture: Architecture, weights: Tensors, layer: int) -> GatedMlp | ExpertsMlp:
    """The MLP of a layer, as the architecture has it there."""
    prefix = f"model.layers.{layer}.mlp"
    experts = architecture.experts_of(layer)
    activation = architecture.family.activation
    return ExpertsMlp(experts, weights, prefix, activation) if experts else GatedMlp(weights, prefix, activation)
