"""What the files of a model say of it where only vLLM may compute it. Reads config.json alone."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from axon.engine.load.architecture import unknown_family
from axon.errors import Misconfigured

_MAX_NAME = 100
_LENGTHS = ("max_position_embeddings", "max_seq_len", "n_positions", "seq_length", "model_max_length")
"""The keys under which families write their context length, the usual one first."""


def architecture_of(folder: Path) -> str:
    """The name of the model's class, by which vLLM finds it; empty where the files do not say it."""
    named = _config(folder).get("architectures")
    name = named[0] if isinstance(named, list) and named else ""
    return name if isinstance(name, str) and name.isidentifier() and len(name) <= _MAX_NAME else ""


def context_of(folder: Path) -> int:
    """The model's context in tokens; raises ``Misconfigured`` where config.json does not say it."""
    config = _config(folder)
    text = config.get("text_config")
    for each in (config, text if isinstance(text, Mapping) else {}):
        for key in _LENGTHS:
            if isinstance(length := each.get(key), int) and length > 0:
                return length
    raise Misconfigured(f"{folder}/config.json does not say the model's context length ({', '.join(_LENGTHS)})")


def unknown_to_vllm(folder: Path, architecture: str) -> str:
    """One sentence for a model that vLLM does not compute: whether Axon's own engine does, or what it lacks."""
    unknown = f"the vLLM of engine.vllm_python does not know {architecture or 'it'}"
    if lacks := unknown_family(folder):
        return f"{unknown}, and {lacks}"
    return f"{unknown}; Axon's own engine has {_config(folder)['model_type']}: add it without --engine vllm"


def _config(folder: Path) -> Mapping[str, Any]:
    path = folder / "config.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, Mapping) else {}
