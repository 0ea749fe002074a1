"""Identifies a model folder, so that the ranks of a group do not compute parts of different models."""

import hashlib
from pathlib import Path

from axon.engine.load.tensor_files import find_tensors


def fingerprint(model_dir: Path) -> str:
    """A hash of the config and of the names and sizes of the weight files; the weights themselves are not read."""
    mark = hashlib.sha256((model_dir / "config.json").read_bytes())
    for path in sorted({tensor.path for tensor in find_tensors(model_dir).values()}):
        mark.update(f"{path.name} {path.stat().st_size}".encode())
    return mark.hexdigest()
