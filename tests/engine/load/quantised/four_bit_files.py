"""Checkpoints in four bits as AutoAWQ and GPTQ write them, packed here number by number."""

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

GROUP = 32
AWQ_OUTPUTS = (0, 2, 4, 6, 1, 3, 5, 7)
"""Which of eight outputs AWQ puts into each four bits of an int32, from the lowest up."""
IN_ORDER = tuple(range(8))


def gptq(**changes: Any) -> dict[str, Any]:
    """The quantization_config of a GPTQ checkpoint."""
    return {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "desc_act": False, "sym": False} | changes


LAYOUTS: dict[str, dict[str, Any]] = {
    "awq": {"quant_method": "awq", "bits": 4, "group_size": GROUP, "zero_point": True, "version": "gemm"},
    "gptq": gptq(),
    "gptq in any order": gptq(desc_act=True),
    "gptq of version 2": gptq(checkpoint_format="gptq_v2"),
    "gptq of one group": gptq(group_size=-1),
}


def pack(numbers: torch.Tensor, order: tuple[int, ...]) -> torch.Tensor:
    """Packs eight numbers of a row into each int32."""
    words: torch.Tensor = numbers.long().reshape(len(numbers), -1, 8)[..., list(order)] << torch.arange(0, 32, 4)
    return words.sum(-1).to(torch.int32)


def packed(matrix: torch.Tensor, layout: str, seed: int) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """The parts of a matrix [output, input], and what they stand for."""
    quantisation = LAYOUTS[layout]
    outputs, inputs = matrix.shape
    size = quantisation["group_size"] if quantisation["group_size"] > 0 else inputs
    groups = torch.arange(inputs) // size
    if quantisation.get("desc_act"):
        groups = groups[torch.randperm(inputs, generator=torch.Generator().manual_seed(seed))]
    num_groups = int(groups.max()) + 1
    scales, zeros = torch.empty(num_groups, outputs, dtype=torch.float16), torch.empty(num_groups, outputs).int()
    for group in range(num_groups):
        part = matrix[:, groups == group]
        low, high = part.amin(1).clamp(max=-1e-3), part.amax(1).clamp(min=1e-3)
        scales[group] = ((high - low) / 15).half()
        zeros[group] = (-low / scales[group].float()).round().clamp(1, 15).int()
    numbers = (matrix.T / scales[groups].float() + zeros[groups]).round().clamp(0, 15).int()
    meant = ((numbers - zeros[groups]).float() * scales[groups].float()).T
    if quantisation["quant_method"] == "awq":
        parts = {"qweight": pack(numbers, AWQ_OUTPUTS), "qzeros": pack(zeros, AWQ_OUTPUTS)}
    else:
        stored = zeros if quantisation.get("checkpoint_format") == "gptq_v2" else zeros - 1
        parts = {
            "qweight": pack(numbers.T, IN_ORDER).T.contiguous(),
            "qzeros": pack(stored, IN_ORDER),
            "g_idx": groups.int(),
        }
    return parts | {"scales": scales}, meant.contiguous()


def seed_of(name: str) -> int:
    """A number that matrices with the same inputs share: they have the same order of groups."""
    layer, module = int(name.split(".")[2]), name.split(".")[-2]
    places = {"q_proj": 0, "k_proj": 0, "v_proj": 0, "o_proj": 1, "gate_proj": 2, "up_proj": 2, "down_proj": 3}
    return 4 * layer + places[module]


def publish(folder: Path, target: Path, layout: str) -> dict[str, torch.Tensor]:
    """Writes the folder's model with its layers' matrices in four bits; returns what its tensors stand for."""
    shutil.copytree(folder, target, dirs_exist_ok=True)
    meant: dict[str, torch.Tensor] = {}
    written: dict[str, torch.Tensor] = {}
    for name, tensor in load_file(folder / "model.safetensors").items():
        if not name.endswith("_proj.weight"):
            written[name] = meant[name] = tensor
            continue
        parts, meant[name] = packed(tensor.float(), layout, seed_of(name))
        written |= {name.removesuffix("weight") + part: each for part, each in parts.items()}
    save_file(written, target / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    (target / "config.json").write_text(json.dumps(config | {"quantization_config": LAYOUTS[layout]}))
    return meant
