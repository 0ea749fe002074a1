"""Writes a model folder whose weights are random, for measurements that care for shapes alone. Has no tokenizer."""

import json
from pathlib import Path
from typing import Any

import torch

from axon.engine.load.architecture import read_architecture

POOL_NUMBERS = 1 << 26


def write_random_model(folder: Path, config: dict[str, Any], device: str) -> None:
    """Writes config.json and model.safetensors in bfloat16; ``device`` draws the numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    write_weights(folder, device)


def write_weights(folder: Path, device: str) -> None:
    """Norms of one; everything else from one row of small random numbers, from another place in it for each tensor."""
    shapes = read_architecture(folder).tensor_shapes()
    header: dict[str, Any] = {}
    end = 0
    for name, shape in shapes.items():
        size = 2 * torch.Size(shape).numel()
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    torch.manual_seed(0)
    pool = memoryview(_bytes(torch.randn(POOL_NUMBERS, device=device) * 0.02))
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for index, (name, shape) in enumerate(shapes.items()):
            size = 2 * torch.Size(shape).numel()
            if "norm" in name:
                file.write(_bytes(torch.ones(shape)))
                continue
            start = index * 7919 * 2 % len(pool)
            while size:
                size -= file.write(pool[start : start + size])
                start = 0


def _bytes(numbers: torch.Tensor) -> bytes:
    return numbers.to(torch.bfloat16).cpu().view(torch.int16).numpy().tobytes()
