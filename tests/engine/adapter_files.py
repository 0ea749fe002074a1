"""LoRA adapters in folders, written as PEFT writes them, and the same adapters merged into their model by hand."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from axon.engine.load.architecture import read_architecture
from axon.engine.protocol.messages import Add
from tests.engine.builders import make_add

ALL = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def make_adapter(
    folder: Path,
    base: Path,
    *,
    seed: int = 0,
    rank: int = 4,
    alpha: float = 8.0,
    targets: tuple[str, ...] = ALL,
    size: float = 0.3,
    **config: Any,
) -> Path:
    """Writes a random adapter for a model; equal arguments give equal weights."""
    random = np.random.default_rng(1000 + seed)
    tensors: dict[str, Any] = {}
    for name, shape in read_architecture(base).tensor_shapes().items():
        module = name.removesuffix(".weight")
        if module.rpartition(".")[2] in targets:
            prefix = f"base_model.model.{module}"
            tensors[f"{prefix}.lora_A.weight"] = random.normal(0, size, (rank, shape[1])).astype(np.float32)
            tensors[f"{prefix}.lora_B.weight"] = random.normal(0, size, (shape[0], rank)).astype(np.float32)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "adapter_model.safetensors")
    written = {"peft_type": "LORA", "r": rank, "lora_alpha": alpha, "target_modules": list(targets), "bias": "none"}
    (folder / "adapter_config.json").write_text(json.dumps(written | config))
    return folder


def merge(base: Path, adapter: Path, folder: Path) -> Path:
    """Writes the model with the adapter's matrices added to its own."""
    config = json.loads((adapter / "adapter_config.json").read_text())
    root = math.sqrt(config["r"]) if config.get("use_rslora") else config["r"]
    tensors, low_rank = load_file(base / "model.safetensors"), load_file(adapter / "adapter_model.safetensors")
    for name in [each for each in low_rank if each.endswith("lora_A.weight")]:
        module = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
        product = low_rank[name.replace("lora_A", "lora_B")].astype(np.float64) @ low_rank[name].astype(np.float64)
        merged = tensors[f"{module}.weight"] + product * (config["lora_alpha"] / root)
        tensors[f"{module}.weight"] = merged.astype(np.float32)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text((base / "config.json").read_text())
    return folder


def adapted(id: str, folder: Path | None, **fields: Any) -> Add:
    """A sequence with the adapter of a folder, whose name stands for its digest."""
    own = {"adapter": folder.name, "adapter_folder": str(folder)} if folder else {}
    return make_add(id, **{"ignore_eos": True, **own, **fields})
