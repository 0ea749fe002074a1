"""The tensors of a model folder as float32 arrays, mapped or widened. Knows no model, and no torch."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from axon.engine.load.tensor_files import TensorInfo, find_tensors
from axon.errors import Misconfigured

Floats = npt.NDArray[np.float32]


class Arrays:
    """A folder's tensors by name; ``take`` reads one."""

    def __init__(self, model_dir: Path, prefix: str = "") -> None:
        """``prefix`` stands before every name that is asked for."""
        self._tensors = find_tensors(model_dir)
        self._model_dir, self._prefix = model_dir, prefix

    def take(self, name: str) -> Floats:
        """One tensor; raises Misconfigured where it is missing or not of floats."""
        tensor = self._tensors.get(self._prefix + name)
        if tensor is None:
            raise Misconfigured(f"{self._model_dir} has no tensor {self._prefix + name!r}")
        return read_array(name, tensor)


def read_array(name: str, tensor: TensorInfo) -> Floats:
    """The tensor of this name, from its file; raises ``Misconfigured`` where it is not of floats."""
    kinds = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": np.uint16}
    if tensor.dtype not in kinds:
        raise Misconfigured(f"{name!r} in {tensor.path} is quantised ({tensor.dtype})")
    raw = np.memmap(tensor.path, kinds[tensor.dtype], "r", tensor.offset, tensor.shape or (1,))
    if tensor.dtype == "BF16":  # the upper half of a float32
        return (raw.astype(np.uint32) << 16).view(np.float32)
    return np.ascontiguousarray(raw, np.float32)
