"""The tensors of a model folder by name, mapped from its safetensors files. Knows no model."""

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from safetensors import safe_open

from axon.engine.load.quantised.four_bit_layout import OPTIONAL, FourBits, part_of
from axon.engine.load.quantised.four_bit_matrices import FourBitParts, unpacked
from axon.engine.load.quantised.fp8_layout import FP8_NAME
from axon.engine.load.quantised.fp8_matrices import row_scales, widened
from axon.engine.load.quantised.mxfp4_layout import blocks_of, exponents_of
from axon.engine.load.quantised.mxfp4_matrices import unpacked_mxfp4
from axon.engine.load.quantised.quantisation import four_bits_of
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

    def take_expert(self, name: str, expert: int, device: torch.device | None = None) -> torch.Tensor:
        """One expert of a tensor of all: its matrix as [output, input], or its bias. ``device``: MXFP4 is unpacked
        there."""
        if name not in self._tensors and blocks_of(name) in self._tensors:
            names = blocks_of(name), exponents_of(name)
            blocks, scales = (self._slice(each, expert).to(device or "cpu") for each in names)
            return unpacked_mxfp4(blocks, scales).to(self.dtype)
        own = self._slice(name, expert)
        return (own.T if own.ndim == 2 else own).to(self.dtype)

    def _slice(self, name: str, index: int) -> torch.Tensor:
        tensor: torch.Tensor = self._find(name).get_slice(name)[index]
        return tensor

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

    def take_four_bits(self, names: Iterable[str]) -> FourBitParts | None:
        """Several matrices as they are in four bits; None if one of them is not."""
        found = self.four_bit_infos(names)
        if found is None:
            return None
        layout, matrices = found
        return layout, [
            {part: self._find(name).get_tensor(name) for part, (name, _) in parts.items()} for parts in matrices
        ]

    def four_bit_infos(self, names: Iterable[str]) -> tuple[FourBits, list[dict[str, tuple[str, TensorInfo]]]] | None:
        """Name and place of every part of ``take_four_bits``."""
        listed = list(names)
        if self._four_bits is None or not all(map(self._is_packed, listed)):
            return None
        for name in listed:
            self._check_groups(name)
        found = [self._part_names(name).items() for name in listed]
        return self._four_bits, [{part: (each, self.info(each)) for part, each in parts} for parts in found]

    def _is_packed(self, name: str) -> bool:
        return self._four_bits is not None and name not in self._tensors and part_of(name, "qweight") in self._tensors

    def _take_packed(self, name: str) -> torch.Tensor:
        assert self._four_bits is not None
        parts = {part: self._find(each).get_tensor(each) for part, each in self._part_names(name).items()}
        self._check_groups(name)
        return unpacked(self._four_bits, parts)

    def _check_groups(self, name: str) -> None:
        """Raises ``Misconfigured`` where inputs of a matrix in four bits are of groups that have no scales."""
        names = self._part_names(name)
        if "g_idx" not in names:
            return
        groups: torch.Tensor = self._find(names["g_idx"]).get_tensor(names["g_idx"])
        if not 0 <= int(groups.min()) <= int(groups.max()) < self._tensors[names["scales"]].shape[0]:
            raise Misconfigured(f"{self._model_dir}: {names['g_idx']!r} names groups that have no scales")

    def _part_names(self, name: str) -> dict[str, str]:
        """The tensors of a matrix in four bits, by part."""
        names = {part: part_of(name, part) for part in ("qweight", "qzeros", "scales", *OPTIONAL)}
        return {part: each for part, each in names.items() if part not in OPTIONAL or each in self._tensors}

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
