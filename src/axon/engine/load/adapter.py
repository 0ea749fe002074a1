"""A LoRA adapter's folder as PEFT writes it: low-rank matrices beside a model's own. Knows no torch and no backend."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from axon.engine.load.architecture import Architecture
from axon.engine.load.arrays import read_array
from axon.engine.load.tensor_files import TensorInfo, read_header
from axon.errors import Misconfigured

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
MODULES = ("q", "k", "v", "o", "gate", "up", "down")
"""The products of a layer that an adapter may change, without ``_proj``."""
MAX_RANK = 512
Floats = npt.NDArray[np.float32]

_NAME = re.compile(
    r"base_model\.model\.model\.layers\.(\d+)\.(?:self_attn|mlp)\.(q|k|v|o|gate|up|down)_proj\.lora_(A|B)\.weight"
)
_OTHER_WEIGHTS = ("pissa", "olora", "loftq", "corda")
"""Ways to begin a training that change the base model's own weights too."""


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
    """For each layer, by the names in ``MODULES``; a product that it does not change is missing."""

    @property
    def num_bytes(self) -> int:
        return sum(pair.down.nbytes + pair.up.nbytes for layer in self.layers for pair in layer.values())


def read_adapter(folder: Path, architecture: Architecture) -> AdapterWeights:
    """Reads an adapter; raises ``Misconfigured`` with a sentence for one that this model cannot run."""
    scale_of = _scales(_read_config(folder))
    path = folder / WEIGHTS
    if not path.is_file():
        raise Misconfigured(f"{folder} has no {WEIGHTS}; adapters are read as PEFT writes them, in safetensors")
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
        if not (np.isfinite(down).all() and np.isfinite(up).all()):
            raise Misconfigured(f"{path}: {module}_proj of layer {index} has numbers that are not finite")
        layers[index][module] = Pair(down, up * np.float32(scale_of(len(down))))
    return AdapterWeights(layers=tuple(layers))


def check_adapter(folder: Path) -> None:
    """Raises ``Misconfigured`` for a folder that no model can run as an adapter; reads no tensors."""
    _scales(_read_config(folder))
    if not (folder / WEIGHTS).is_file():
        raise Misconfigured(f"{folder} has no {WEIGHTS}; adapters are read as PEFT writes them, in safetensors")
    read_header(folder / WEIGHTS)


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise Misconfigured(f"{folder} is no adapter: it has no {CONFIG}") from None
    except (ValueError, RecursionError) as error:
        raise Misconfigured(f"{path} cannot be read: {error}") from None
    if not isinstance(config, dict):
        raise Misconfigured(f"{path} cannot be read: it is no JSON object")
    if problem := _problem(config):
        raise Misconfigured(f"{path}: {problem}")
    return config


def _problem(config: Mapping[str, Any]) -> str:
    """Why an adapter of this config cannot be run; empty if it can."""
    if config.get("peft_type") != "LORA":
        return f"an adapter of type {config.get('peft_type')!r} is not supported; LORA is"
    if config.get("use_dora"):
        return "DoRA (use_dora) is not supported; train a plain LoRA, or merge the adapter into its model"
    if config.get("bias", "none") != "none" or config.get("lora_bias"):
        return "an adapter with biases (bias, lora_bias) is not supported; train it with bias = none"
    for name in ("modules_to_save", "trainable_token_indices"):
        if config.get(name):
            return f"whole modules beside the LoRA ({name}) are not supported; merge the adapter into its model"
    for name in ("rank_pattern", "alpha_pattern", "fan_in_fan_out", "layer_replication"):
        if config.get(name):
            return f"{name} is not supported"
    begun = str(config.get("init_lora_weights", "")).lower()
    if begun.startswith(_OTHER_WEIGHTS):
        return f"init_lora_weights = {begun} changes the base model's weights too; convert it to a plain LoRA first"
    others = _others(config.get("target_modules"))
    return f"it targets {', '.join(others)}; q, k, v, o, gate, up and down (_proj) are supported" if others else ""


def _others(targets: object) -> list[str]:
    """Targets beyond the seven; a pattern is judged by the tensors that it has led to."""
    if not isinstance(targets, list):
        return []
    known = {f"{module}_proj" for module in MODULES}
    return sorted(str(each) for each in targets if str(each).rpartition(".")[2] not in known)


class _Scale:
    """The factor of an adapter's matrices of a rank."""

    def __init__(self, rank: int, alpha: float, *, by_root: bool) -> None:
        self._rank, self._factor = rank, alpha / (math.sqrt(rank) if by_root else rank)

    def __call__(self, rank: int) -> float:
        if rank != self._rank:
            raise Misconfigured(f"{CONFIG} says r = {self._rank}, but there are matrices of rank {rank}")
        return self._factor


def _scales(config: Mapping[str, Any]) -> _Scale:
    rank, alpha = config.get("r"), config.get("lora_alpha")
    if type(rank) is not int or not 0 < rank <= MAX_RANK:
        raise Misconfigured(f"{CONFIG}: r must be a whole number from 1 to {MAX_RANK}, not {rank!r}")
    if type(alpha) not in (int, float) or not math.isfinite(alpha):
        raise Misconfigured(f"{CONFIG}: lora_alpha must be a number, not {alpha!r}")
    return _Scale(rank, float(alpha), by_root=bool(config.get("use_rslora")))


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
    num_outputs, num_inputs = architecture.tensor_shapes()[f"model.layers.{index}.{part}.{module}_proj.weight"]
    down, up = tensors["A"].shape, tensors["B"].shape
    rank = down[0] if len(down) == 2 else 0
    if down != (rank, num_inputs) or up != (num_outputs, rank) or not rank:
        raise Misconfigured(
            f"{path} is of another base model: {module}_proj of layer {index} is {list(up)} x {list(down)} there, and "
            f"{num_outputs} x {num_inputs} here"
        )
