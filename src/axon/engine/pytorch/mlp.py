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
    between them. In float32, because those of bfloat16 differ even in exp and in sums with a number."""
    wide = gate.float()
    return (wide / (1 + torch.exp(-wide))).to(gate.dtype)


def gelu_tanh(gate: torch.Tensor) -> torch.Tensor:
    """GELU by its approximation with tanh, written as x · sigmoid(2u) for the reason that ``silu`` gives."""
    wide = gate.float()
    twice = 2 * math.sqrt(2 / math.pi) * (wide + 0.044715 * wide * wide * wide)
    return (wide / (1 + torch.exp(-twice))).to(gate.dtype)


def clamped_swiglu(gate: torch.Tensor, up: torch.Tensor, limit: float, slope: float) -> torch.Tensor:
    """The gated rows of gpt-oss's experts: gate · sigmoid(slope · gate) · (up + 1), both clamped first. In float32: a
    bfloat16 row times a number is rounded in one way or another, and the row count decides between them."""
    wide, more = gate.float().clamp(max=limit), up.float().clamp(-limit, limit) + 1
    return (wide / (1 + torch.exp(-slope * wide)) * more).to(gate.dtype)


ACTIVATIONS = {"silu": silu, "gelu_pytorch_tanh": gelu_tanh}
"""The activations of gates, as config.json names them."""


class GatedMlp:
    """SwiGLU or GeGLU; gate and up are stacked, so that one product computes them together."""

    def __init__(self, weights: Tensors, prefix: str, activation: str, experts: Experts | None = None) -> None:
        """``experts``: it is one of these, which may have biases and a clamped SwiGLU."""
        self._activation = ACTIVATIONS[activation]
        self._experts = experts
        self._gate_up = Linear(weights.take_stacked([f"{prefix}.{name}_proj.weight" for name in ("gate", "up")]))
        self._down = Linear(weights.take(f"{prefix}.down_proj.weight"))
        self._gate_up_bias: torch.Tensor | None = None
        self._down_bias: torch.Tensor | None = None
        if experts is not None and experts.has_bias:
            self._gate_up_bias = weights.take_stacked([f"{prefix}.{name}_proj.bias" for name in ("gate", "up")])
            self._down_bias = weights.take(f"{prefix}.down_proj.bias")

    @property
    def linears(self) -> list[Linear]:
        return [self._gate_up, self._down]

    def __call__(self, rows: torch.Tensor, tiling: Tiling, product: Product | None = None) -> torch.Tensor:
        product = product or (lambda _, linear, inputs: linear(inputs, tiling))
        gate, up = _biased(product("gate_up", self._gate_up, rows), self._gate_up_bias).chunk(2, dim=1)
        return _biased(product("down", self._down, self._gate(gate, up)), self._down_bias)

    def _gate(self, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        if self._experts is not None and self._experts.limit:
            return clamped_swiglu(gate, up, self._experts.limit, self._experts.slope)
        return self._activation(gate) * up


def _biased(rows: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return rows if bias is None else rows + bias


class ExpertsMlp:
    """A router chooses a few experts for each row; the rows of each expert are computed together.

    The router computes in float32. A row's experts are added up in the order of their numbers, so that the row does not
    depend on the others of its batch. No adapter changes an expert.
    """

    def __init__(self, experts: Experts, weights: Tensors, prefix: str, activation: str) -> None:
        self._shape = experts
        self._router = Linear(weights.take(f"{prefix}.gate.weight").float())
        self._router_bias = weights.take(f"{prefix}.gate.bias").float() if experts.has_bias else None
        self._experts = [
            GatedMlp(weights, f"{prefix}.experts.{index}", activation, experts) for index in range(experts.count)
        ]

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
        logits = _biased(self._router(rows.float(), tiling), self._router_bias)
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
