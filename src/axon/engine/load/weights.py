"""The tensors of a model folder by name, mapped from its safetensors files. Knows no model."""

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from safetensors import safe_open

from axon.engine.load.tensor_files import find_tensors
from axon.errors import Misconfigured


class Weights:
    """Open while a model is built; one file or many shards look the same."""

    def __init__(self, model_dir: Path, dtype: torch.dtype) -> None:
        self._model_dir = model_dir
        self._dtype = dtype
        self._stack = ExitStack()
        self._file_of: dict[str, Any] = {}

    def __enter__(self) -> Self:
        places = find_tensors(self._model_dir)
        files = {
            path: self._stack.enter_context(safe_open(path, framework="pt"))
            for path in sorted({place.path for place in places.values()})
        }
        self._file_of = {name: files[place.path] for name, place in places.items()}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def take(self, name: str) -> torch.Tensor:
        """One tensor in the engine's dtype."""
        tensor: torch.Tensor = self._find(name).get_tensor(name)
        return tensor.to(self._dtype)

    def take_part(self, name: str, dim: int, start: int, stop: int) -> torch.Tensor:
        """``start`` to ``stop`` of a tensor along a dimension; nothing else of it is read."""
        mapped = self._find(name).get_slice(name)
        tensor: torch.Tensor = mapped[start:stop] if dim == 0 else mapped[:, start:stop]
        return tensor.to(self._dtype)

    def take_stacked(self, names: Iterable[str]) -> torch.Tensor:
        """Several tensors one below the other, so that one product serves them all."""
        return torch.cat([self.take(name) for name in names])

    def _find(self, name: str) -> Any:
        if name not in self._file_of:
            raise Misconfigured(f"{self._model_dir} has no tensor {name!r}")
        return self._file_of[name]
