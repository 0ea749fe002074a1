"""A LoRA adapter's folder as PEFT writes it: low-rank matrices beside a model's own. Knows no torch and no backend."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from axon.engine.load.adapter_config import read_scale, weights_of
from axon.engine.load.architecture import Architecture
from axon.engine.load.arrays import read_array
from axon.engine.load.tensor_files import TensorInfo, read_header
from axon.errors import Misconfigured

Floats = npt.NDArray[np.float32]

_MAX_NUMBER = 1e15
"""Products of larger numbers may leave what a float32 holds, and their answers would be empty."""
_NAME = re.compile(
    r"base_model\.model\.model\.layers\.(\d{1,9})\.(?:self_attn|mlp)\.(q|k|v|o|gate|up|down)_proj\.lora_(A|B)\.weight"
)


@dataclass(frozen=True, slots=True)
class Pair:
    """The two matrices beside one product: it gives ``up · (down · x)`` more."""

    down: Floats
    """[rank, input]"""
    up: Floats
    """[output, rank], with the adapter's scale in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterWeights:
    """An adapter's matrices in float32."""

    layers: tuple[Mapping[str, Pair], ...]
    """For each layer by ``q``, ``k``, ``v``, ``o``, ``gate``, ``up`` and ``down``, as far as it changes them."""

    @property
    def num_bytes(self) -> int:
        return sum(pair.down.nbytes + pair.up.nbytes for layer in self.layers for pair in layer.values())


def read_adapter(folder: Path, architecture: Architecture) -> AdapterWeights:
    """Reads an adapter; raises ``Misconfigured`` with a sentence for one that this model cannot run."""
    scale, path = read_scale(folder), weights_of(folder)
    found: dict[tuple[int, str], dict[str, TensorInfo]] = {}
    for name, tensor in read_header(path).items():
        if (match := _NAME.fullmatch(name)) is None:
            raise Misconfigured(f"{path}: the tensor {name!r} is none of a LoRA of q, k, v, o, gate, up or down")
        found.setdefault((int(match[1]), match[2]), {})[match[3]] = tensor
    if not found:
        raise Misconfigured(f"{path} has no tensors")
    layers: list[dict[str, Pair]] = [{} for _ in range(architecture.num_layers)]
    for (index, module), tensors in sorted(found.items()):
        _check_shape(path, index, module, tensors, architecture)
        down, up = (read_array(f"{module}_proj.lora_{side}", tensors[side]) for side in "AB")
        scaled = up * np.float32(scale.of(len(down)))
        if not (np.abs(down).max(initial=0.0) < _MAX_NUMBER and np.abs(scaled).max(initial=0.0) < _MAX_NUMBER):
            raise Misconfigured(f"{path}: {module}_proj of layer {index} has numbers that are not finite, or too large")
        layers[index][module] = Pair(down, scaled)
    return AdapterWeights(layers=tuple(layers))


def _check_shape(
    path: Path, index: int, module: str, tensors: Mapping[str, TensorInfo], architecture: Architecture
) -> None:
    if index >= architecture.num_layers:
        raise Misconfigured(
            f"{path} is of another base model: it has a layer {index}, and this one has {architecture.num_layers}"
        )
    if tensors.keys() != {"A", "B"}:
        raise Misconfigured(f"{path}: {module}_proj of layer {index} has only one of lora_A and lora_B")
    part = "self_attn" if module in "qkvo" else "mlp"
    shape = architecture.tensor_shapes().get(f"model.layers.{index}.{part}.{module}_proj.weight")
    if shape is None:
        raise Misconfigured(
            f"{path}: layer {index} of this model is a mixture of experts, of which no adapter changes any"
        )
    num_outputs, num_inputs = shape
    down, up = tensors["A"].shape, tensors["B"].shape
    rank = down[0] if len(down) == 2 else 0
    if down != (rank, num_inputs) or up != (num_outputs, rank) or not rank:
        raise Misconfigured(
            f"{path} is of another base model: {module}_proj of layer {index} is {list(up)} x {list(down)} there, and "
            f"{num_outputs} x {num_inputs} here"
        )
