"""Published checkpoints in fp8, made of a model folder: the layouts of compressed-tensors and of DeepSeek."""

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from axon.engine.load.quantised.fp8_layout import BLOCK

FP8 = torch.float8_e4m3fn
LARGEST = 448.0


def compressed(strategy: str) -> dict[str, Any]:
    weights = {"num_bits": 8, "type": "float", "strategy": strategy, "symmetric": True, "dynamic": False}
    inputs = {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True}
    group = {"targets": ["Linear"], "weights": weights, "input_activations": inputs}
    return {
        "quant_method": "compressed-tensors",
        "format": "float-quantized",
        "config_groups": {"group_0": group},
        "ignore": ["lm_head"],
    }


LAYOUTS: dict[str, dict[str, Any]] = {
    "tensor": compressed("tensor"),
    "channel": compressed("channel"),
    "block": compressed("block"),
    "deepseek": {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]},
}


def scales_for(matrix: torch.Tensor, layout: str) -> torch.Tensor:
    """The scales of a matrix, in the shape that the layout has them."""
    size = matrix.abs()
    if layout == "tensor":
        return size.max().reshape(1) / LARGEST
    if layout == "channel":
        return size.amax(1, keepdim=True) / LARGEST
    rows, columns = (-(-count // BLOCK) for count in matrix.shape)
    scales = torch.empty(rows, columns)
    for row in range(rows):
        for column in range(columns):
            block = size[row * BLOCK : (row + 1) * BLOCK, column * BLOCK : (column + 1) * BLOCK]
            scales[row, column] = block.max() / LARGEST
    return scales


def spread(scales: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """A scale for each number of a matrix."""
    if scales.numel() == 1 or (scales.shape[1] == 1 and scales.shape[0] == shape[0]):
        return scales.reshape(-1, 1).expand(shape)
    rows, columns = torch.arange(shape[0]) // BLOCK, torch.arange(shape[1]) // BLOCK
    return scales[rows][:, columns]


def publish(folder: Path, target: Path, layout: str) -> dict[str, torch.Tensor]:
    """Writes the folder's model with its layers' matrices in fp8; returns what its tensors stand for."""
    shutil.copytree(folder, target, dirs_exist_ok=True)
    tensors = load_file(folder / "model.safetensors")
    meant: dict[str, torch.Tensor] = {}
    written: dict[str, torch.Tensor] = {}
    suffix = "_scale_inv" if layout == "deepseek" else "_scale"
    for name, tensor in tensors.items():
        if not name.endswith("_proj.weight"):
            written[name] = meant[name] = tensor
            continue
        scales = scales_for(tensor.float(), layout)
        each = spread(scales, tensor.shape)
        written[name] = (tensor.float() / each).clamp(-LARGEST, LARGEST).to(FP8)
        written[name + suffix] = scales
        meant[name] = written[name].float() * each
    save_file(written, target / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    (target / "config.json").write_text(json.dumps(config | {"quantization_config": LAYOUTS[layout]}))
    return meant
