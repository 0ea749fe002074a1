"""Checks before anything slow is done: is the engine installed, is there a GPU, and space. Changes nothing."""

import ctypes
import shutil
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from axon.bootstrap.models.vllm import require_vllm
from axon.engine.config import EngineConfig
from axon.errors import Misconfigured

_MARGIN_BYTES = 16 << 20
"""Space for what is written beside the weights: the tokenizer, the template, the store's first pages."""


_ENGINE = ("gguf", "numpy", "safetensors", "torch")
"""What the extra ``engine`` installs."""


def require_engine(configs: Iterable[EngineConfig]) -> None:
    """Raises ``Misconfigured`` where one of these runs a model and a package that this takes is not installed, or there
    is no vLLM; imports none of them."""
    configs = list(configs)
    for config in configs:
        require_vllm(config)
    if any(each.kind == "axon" for each in configs) and not all(find_spec(name) for name in _ENGINE):
        raise Misconfigured("The engine is not installed: pip install 'axon-serving[engine]'.")


def require_device(config: EngineConfig) -> None:
    """Raises ``Misconfigured`` where a GPU is asked for and none is there; torch is not imported for it."""
    if config.kind == "axon" and config.device == "cuda" and _num_gpus() == 0:
        raise Misconfigured(
            "engine.device = cuda, but there is no NVIDIA GPU that CUDA can use here. Leave it at auto, or set cpu."
        )


def require_space(folder: Path, num_bytes: int) -> None:
    """Raises ``Misconfigured`` where a conversion of this size does not fit below ``folder``, which may not exist."""
    place = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    free, needed = shutil.disk_usage(place).free, num_bytes + _MARGIN_BYTES
    if free < needed:
        raise Misconfigured(
            f"There is not enough space in {folder}: the converted model takes {_megabytes(needed)} there, and "
            f"{_megabytes(free)} are free. Free some, or choose another folder with --data-dir."
        )


def _num_gpus() -> int:
    """Counts devices with the driver's own library, which honours CUDA_VISIBLE_DEVICES."""
    count = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        found = driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0
    except (OSError, AttributeError):
        return 0
    return count.value if found else 0


def _megabytes(num_bytes: int) -> str:
    return f"{num_bytes / 1e6:,.0f} MB"
