"""The tensors of a model folder by name, mapped from its safetensors files. Knows no model."""

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from safetensors import safe_open

from axon.engine.load.four_bit_layout import OPTIONAL, FourBits, part_of
from axon.engine.load.four_bit_matrices import unpacked
from axon.engine.load.fp8_layout import FP8_NAME
from axon.engine.load.fp8_matrices import row_scales, widened
from axon.engine.load.quantisation import four_bits_of
from axon.engine.load.tensor_files import TensorInfo, find_tensors, scales_of
from axon.errors import Misconfigured


class Weights:
    """The open files of a model; one file or many shards look the same."""

    def __init__(self, model_dir: Path, dtype: torch.dtype) -> None:
        self._model_dir = model_dir
        self.dtype = dtype
        """The dtype that the model computes in."""
        self._stack = ExitStack()
        self._tensors: dict[str, TensorInfo] = {}
        self._file_of: dict[str, Any] = {}
        self._four_bits: FourBits | None = None

    def __enter__(self) -> Self:
        self._tensors = tensors = find_tensors(self._model_dir)
        files = {
            path: self._stack.enter_context(safe_open(path, framework="pt"))
            for path in sorted({tensor.path for tensor in tensors.values()})
        }
        self._file_of = {name: files[tensor.path] for name, tensor in tensors.items()}
        if any(name.endswith(".qweight") for name in tensors):
            self._four_bits = four_bits_of(self._model_dir)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def info(self, name: str) -> TensorInfo:
        """Where a tensor lies; of a matrix in four bits, where its numbers do."""
        name = part_of(name, "qweight") if self._is_packed(name) else name
        self._find(name)
        return self._tensors[name]

    def take(self, name: str) -> torch.Tensor:
        """One tensor, in the dtype that the model computes in."""
        if self._is_packed(name):
            return self._take_packed(name).to(self.dtype)
        tensor: torch.Tensor = self._find(name).get_tensor(name)
        if self._tensors[name].dtype == FP8_NAME:
            tensor = widened(tensor, self._scales(name))
        return tensor.to(self.dtype)

    def take_part(self, name: str, dim: int, start: int, stop: int) -> torch.Tensor:
        """The slice ``start`` to ``stop`` of a tensor along a dimension; only that part is read, but of fp8
        and four bits all."""
        if self._is_packed(name) or self.info(name).dtype == FP8_NAME:
            whole = self.take(name)
            return whole[start:stop] if dim == 0 else whole[:, start:stop]
        mapped = self._find(name).get_slice(name)
        tensor: torch.Tensor = mapped[start:stop] if dim == 0 else mapped[:, start:stop]
        return tensor.to(self.dtype)

    def take_stacked(self, names: Iterable[str]) -> torch.Tensor:
        """Several tensors concatenated along their outputs, so that one product computes them all."""
        return torch.cat([self.take(name) for name in names])

    def take_fp8(self, names: Iterable[str]) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Several matrices as they are in fp8, concatenated along their outputs, and a scale for each output; None if
        one of them is not fp8, or has several scales for an output."""
        listed = list(names)
        scales = self.fp8_scales(listed)
        return None if scales is None else (torch.cat([self._find(name).get_tensor(name) for name in listed]), scales)

    def fp8_scales(self, names: Iterable[str]) -> torch.Tensor | None:
        """The scales of ``take_fp8`` alone."""
        scales = []
        for name in names:
            info = self.info(name)
            found = row_scales(info.shape, self._scales(name)) if info.dtype == FP8_NAME else None
            if found is None:
                return None
            scales.append(found)
        return torch.cat(scales)

    def _is_packed(self, name: str) -> bool:
        return self._four_bits is not None and name not in self._tensors and part_of(name, "qweight") in self._tensors

    def _take_packed(self, name: str) -> torch.Tensor:
        assert self._four_bits is not None
        parts = {}
        for part in ("qweight", "qzeros", "scales", *OPTIONAL):
            each = part_of(name, part)
            if part not in OPTIONAL or each in self._tensors:
                parts[part] = self._find(each).get_tensor(each)
        groups = parts.get("g_idx")
        if groups is not None and not 0 <= int(groups.min()) <= int(groups.max()) < len(parts["scales"]):
            raise Misconfigured(f"{self._model_dir}: {part_of(name, 'g_idx')!r} names groups that have no scales")
        return unpacked(self._four_bits, parts)

    def _scales(self, name: str) -> torch.Tensor:
        scales_name = scales_of(name, self._tensors)
        if scales_name is None:
            raise Misconfigured(f"{self._model_dir}: {name!r} is fp8 and has no scales")
        scales: torch.Tensor = self._find(scales_name).get_tensor(scales_name)
        return scales

    def _find(self, name: str) -> Any:
        if name not in self._file_of:
            raise Misconfigured(f"{self._model_dir} has no tensor {name!r}")
        return self._file_of[name]
