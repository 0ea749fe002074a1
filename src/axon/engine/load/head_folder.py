"""The folder of a draft head: whether it is one, and where that of the default model is. Reads config.json alone."""

import json
from pathlib import Path
from typing import Any

DEFAULT_HEAD = Path(__file__).parents[1] / "heads" / "smollm2-135m-instruct"
"""The head of the default model, which ``python -m training`` has made; its training.json says how."""


def is_head(folder: Path) -> bool:
    """Whether a folder holds a draft head, of any kind, and not a model."""
    return any("eagle" in name.lower() for name in names_in(read_config(folder)))


def names_in(config: dict[str, Any]) -> list[str]:
    """The architectures that a config.json names."""
    names = config.get("architectures")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def read_config(folder: Path) -> dict[str, Any]:
    """The folder's config.json; empty if it has none that can be read."""
    try:
        content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
