"""The config of a LoRA adapter as PEFT writes it: what is supported, how its matrices are scaled. Reads no tensors."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from axon.engine.load.tensor_files import read_header
from axon.errors import Misconfigured

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
MODULES = ("q", "k", "v", "o", "gate", "up", "down")
"""The products of a layer that an adapter may change, without ``_proj``."""
MAX_RANK = 512
_MAX_ALPHA = 1_000_000
_OTHER_WEIGHTS = ("pissa", "olora", "loftq", "corda", "lora_ga")
"""Ways to begin a training that change the base model's own weights too."""

_UNKNOWN = (
    "rank_pattern",
    "alpha_pattern",
    "fan_in_fan_out",
    "layer_replication",
    "target_parameters",
    "alora_invocation_tokens",
    "use_qalora",
)
"""Options that give the matrices another meaning."""


def check_adapter(folder: Path) -> None:
    """Raises ``Misconfigured`` for a folder that no model can run as an adapter; reads no tensors."""
    read_scale(folder)
    read_header(weights_of(folder))


def weights_of(folder: Path) -> Path:
    """The file of an adapter's matrices; raises ``Misconfigured`` where there is none."""
    if not (folder / WEIGHTS).is_file():
        raise Misconfigured(f"{folder} has no {WEIGHTS}; adapters are read as PEFT writes them, in safetensors")
    return folder / WEIGHTS


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
    for name in _UNKNOWN:
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


class Scale:
    """The factor that an adapter's matrices are multiplied by."""

    def __init__(self, rank: int, alpha: float, *, by_root: bool) -> None:
        self._rank, self._factor = rank, alpha / (math.sqrt(rank) if by_root else rank)

    def of(self, rank: int) -> float:
        """The factor; raises ``Misconfigured`` for matrices of another rank than the config says."""
        if rank != self._rank:
            raise Misconfigured(f"{CONFIG} says r = {self._rank}, but there are matrices of rank {rank}")
        return self._factor


def read_scale(folder: Path) -> Scale:
    """Reads an adapter's config; raises ``Misconfigured`` with a sentence for one that no model can run."""
    config = _read_config(folder)
    rank, alpha = config.get("r"), config.get("lora_alpha")
    if type(rank) is not int or not 0 < rank <= MAX_RANK:
        raise Misconfigured(f"{CONFIG}: r must be a whole number from 1 to {MAX_RANK}, not {rank!r}")
    if not isinstance(alpha, int | float) or isinstance(alpha, bool) or not -_MAX_ALPHA <= alpha <= _MAX_ALPHA:
        raise Misconfigured(f"{CONFIG}: lora_alpha must be a number up to {_MAX_ALPHA:,}, not {str(alpha)[:40]}")
    return Scale(rank, float(alpha), by_root=bool(config.get("use_rslora")))
