"""Makes model folders out of one by its layers and weights, as targets and drafts of known likeness. Runs no model."""

import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file, save_file

Tensors = dict[str, npt.NDArray[Any]]
_LAYER = re.compile(r"model\.layers\.(\d+)\.(.+)")
_SILENT = ("self_attn.o_proj.weight", "mlp.down_proj.weight")
"""What a layer adds to its input goes through these."""
_TEXT_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json")


def deepened(source: Path, folder: Path, num_added: int) -> Path:
    """The same function with ``num_added`` more layers, which add zeros: as dear as a larger model, and no wiser."""

    def change(tensors: Tensors, config: dict[str, Any]) -> Tensors:
        num_layers = config["num_hidden_layers"]
        config["num_hidden_layers"] = num_layers + num_added
        layers = {index: _layer(tensors, index % num_layers) for index in range(num_layers, num_layers + num_added)}
        for index, layer in layers.items():
            for name, tensor in layer.items():
                silent = np.zeros_like(tensor) if name in _SILENT else tensor
                tensors[f"model.layers.{index}.{name}"] = silent
        return tensors

    return _write(source, folder, change)


def cut(source: Path, folder: Path, num_layers: int) -> Path:
    """The first layers alone."""

    def change(tensors: Tensors, config: dict[str, Any]) -> Tensors:
        config["num_hidden_layers"] = num_layers
        return {name: tensor for name, tensor in tensors.items() if _is_below(name, num_layers)}

    return _write(source, folder, change)


def blurred(source: Path, folder: Path, noise: float, seed: int = 0) -> Path:
    """The same layers with noise on their matrices: normal, with a deviation of ``noise`` times the matrix's own."""
    random = np.random.default_rng(seed)

    def change(tensors: Tensors, config: dict[str, Any]) -> Tensors:
        return {
            name: tensor + noise * tensor.std() * random.standard_normal(tensor.shape, np.float32)
            if tensor.ndim == 2 and _LAYER.fullmatch(name)
            else tensor
            for name, tensor in tensors.items()
        }

    return _write(source, folder, change)


def scrambled(source: Path, folder: Path, num_layers: int = 4, seed: int = 0) -> Path:
    """A few layers with random matrices of the same deviations: knows nothing."""
    random = np.random.default_rng(seed)

    def change(tensors: Tensors, config: dict[str, Any]) -> Tensors:
        config["num_hidden_layers"] = min(num_layers, config["num_hidden_layers"])
        kept = {name: tensor for name, tensor in tensors.items() if _is_below(name, num_layers)}
        return {
            name: tensor.std() * random.standard_normal(tensor.shape, np.float32) if tensor.ndim == 2 else tensor
            for name, tensor in kept.items()
        }

    return _write(source, folder, change)


def _is_below(name: str, num_layers: int) -> bool:
    layer = _LAYER.fullmatch(name)
    return layer is None or int(layer[1]) < num_layers


def _layer(tensors: Mapping[str, npt.NDArray[Any]], index: int) -> Tensors:
    prefix = f"model.layers.{index}."
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _write(source: Path, folder: Path, change: Callable[[Tensors, dict[str, Any]], Tensors]) -> Path:
    """Writes half as many bytes a number as the default model's folder has: float16."""
    config = json.loads((source / "config.json").read_text())
    tensors = change(load_file(source / "model.safetensors"), config)
    folder.mkdir(parents=True)
    save_file({name: tensor.astype(np.float16) for name, tensor in tensors.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    for name in _TEXT_FILES:
        if (source / name).exists():
            shutil.copy(source / name, folder / name)
    return folder
