"""Copies a model's weights to the device in the background, at the speed of the bus. Knows no model.

Tensors are handed out at once, filled with zeros; threads then read the files into pinned buffers, which the device
copies from (asynchronously, one stream for each thread). They are whole when ``finish`` returns. Meanwhile the kernels
may be compiled, loaded and rehearsed on them.
"""

import os
import queue
import sys
import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch

from axon.engine.cuda.rows import FP8
from axon.engine.load.quantised.four_bit_matrices import FourBitParts
from axon.engine.load.tensor_files import TensorInfo
from axon.engine.load.weights import Weights
from axon.runtime.cores import usable_cores

_CHUNK_BYTES = 16 << 20
_MAX_THREADS = 8
_BUFFERS = 2
"""Pinned buffers of a thread: one is read into while the device copies from the other."""
_SWITCH_S = 0.0002
"""How long a thread may keep the interpreter meanwhile: with Python's 5 ms a chunk would wait for the main thread."""
_NAMES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16", torch.int32: "I32"}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}


@dataclass(frozen=True, slots=True)
class _Settling:
    """Asks a thread to wait for its copies, and says when all have."""

    meeting: threading.Barrier


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Bytes of a file and their place on the device."""

    path: Path
    offset: int
    target: torch.Tensor
    zeroed: Any
    """The event after which the target may be written; None on a CPU."""


class Upload:
    """The tensors of a model on the device, by name."""

    def __init__(self, weights: Weights, device: torch.device) -> None:
        self._weights = weights
        self._device = device
        self._chunks: queue.SimpleQueue[_Chunk | _Settling | None] = queue.SimpleQueue()
        self._error: BaseException | None = None
        self._switch_s = 0.0
        self._threads = [
            threading.Thread(target=self._copy, name=f"axon-upload-{index}", daemon=True)
            for index in range(min(_MAX_THREADS, usable_cores()))
        ]

    def __enter__(self) -> Self:
        self._switch_s = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_S)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._error = self._error or error  # the threads then skip what is left
        self._join()
        if error is None and self._error is not None:
            raise self._error

    def take(self, name: str) -> torch.Tensor:
        """One tensor, in the dtype that the model computes in."""
        return self.take_stacked([name])

    def take_stacked(self, names: Iterable[str]) -> torch.Tensor:
        """Several tensors concatenated along their outputs, so that one product computes them all."""
        infos = {name: self._weights.info(name) for name in names}
        if any(info.dtype != _NAMES.get(self._weights.dtype) for info in infos.values()):
            parts = [self._weights.take(name) for name in infos]  # to be converted first
            return (torch.cat(parts) if len(parts) > 1 else parts[0]).to(self._device)
        return self._begin(list(infos.values()), self._weights.dtype)

    def take_fp8(self, names: Iterable[str]) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Matrices that the files have in fp8, and their scales; see ``Weights.take_fp8``."""
        listed = list(names)
        scales = self._weights.fp8_scales(listed)
        if scales is None:
            return None
        return self._begin([self._weights.info(name) for name in listed], FP8), scales.to(self._device)

    def take_four_bits(self, names: Iterable[str]) -> FourBitParts | None:
        """Matrices that the files have in four bits, by their parts; see ``Weights.take_four_bits``."""
        found = self._weights.four_bit_infos(names)
        if found is None:
            return None
        layout, matrices = found
        return layout, [{part: self._part(*each) for part, each in parts.items()} for parts in matrices]

    def _part(self, name: str, info: TensorInfo) -> torch.Tensor:
        if info.dtype in _DTYPES:
            return self._begin([info], _DTYPES[info.dtype])
        return self._weights.take(name).to(self._device)

    def settle(self) -> None:
        """Waits until the tensors taken so far are whole, so that they can be read; more may follow."""
        settling = _Settling(threading.Barrier(len(self._threads) + 1))
        for _ in self._threads:
            self._chunks.put(settling)
        settling.meeting.wait()
        if self._error is not None:
            raise self._error

    def finish(self) -> None:
        """Waits until every tensor is whole; raises the error of a thread."""
        self._join()
        if self._error is not None:
            raise self._error

    def _begin(self, infos: list[TensorInfo], dtype: torch.dtype) -> torch.Tensor:
        first = infos[0].shape
        shape = (sum(info.shape[0] for info in infos), *first[1:])
        tensor = torch.zeros(shape, dtype=dtype, device=self._device)
        zeroed = None
        if self._device.type == "cuda":
            zeroed = torch.cuda.Event()  # type: ignore[no-untyped-call]
            zeroed.record()
        numbers = tensor.view(-1).view(torch.uint8)
        start = 0
        for info in infos:
            for offset in range(0, info.num_bytes, _CHUNK_BYTES):
                size = min(_CHUNK_BYTES, info.num_bytes - offset)
                target = numbers[start + offset : start + offset + size]
                self._chunks.put(_Chunk(info.path, info.offset + offset, target, zeroed))
            start += info.num_bytes
        return tensor

    def _join(self) -> None:
        for _ in self._threads:
            self._chunks.put(None)
        for thread in self._threads:
            thread.join()
        if self._threads:
            sys.setswitchinterval(self._switch_s)
        self._threads = []

    def _copy(self) -> None:
        """Copies chunks until there are no more; after an error it only takes them off the queue."""
        copier = None
        while (chunk := self._chunks.get()) is not None:
            if isinstance(chunk, _Settling):
                if copier is not None:
                    copier.wait()
                chunk.meeting.wait()  # before this thread takes another: each is asked once
                continue
            if self._error is not None:
                continue
            try:
                copier = copier or _Copier(self._device)
                copier.copy(chunk)
            except BaseException as error:
                self._error = error
        if copier is not None:
            copier.close()


class _Copier:
    """One thread's pinned buffers, stream and open files."""

    def __init__(self, device: torch.device) -> None:
        self._is_gpu = device.type == "cuda"
        if self._is_gpu:
            torch.cuda.set_device(device)
        self._stream: Any = torch.cuda.Stream(device) if self._is_gpu else None  # type: ignore[no-untyped-call]
        self._buffers = [torch.empty(_CHUNK_BYTES, dtype=torch.uint8, pin_memory=self._is_gpu) for _ in range(_BUFFERS)]
        self._events: list[Any] = [None] * _BUFFERS
        self._files: dict[Path, int] = {}
        self._index = 0

    @torch.inference_mode()
    def copy(self, chunk: _Chunk) -> None:
        """Reads the chunk into the next buffer and has the device copy it from there."""
        self._index = (self._index + 1) % _BUFFERS
        if self._events[self._index] is not None:
            self._events[self._index].synchronize()
        buffer = self._buffers[self._index][: len(chunk.target)]
        self._read(chunk, buffer.numpy().data)
        with self._on_stream():
            if chunk.zeroed is not None:
                self._stream.wait_event(chunk.zeroed)
            chunk.target.copy_(buffer, non_blocking=True)
            if self._is_gpu:
                self._events[self._index] = self._stream.record_event()

    def wait(self) -> None:
        """Waits for the device."""
        if self._is_gpu:
            self._stream.synchronize()

    def close(self) -> None:
        """Waits for the device, and closes the files."""
        for descriptor in self._files.values():
            os.close(descriptor)
        self.wait()

    def _read(self, chunk: _Chunk, view: memoryview) -> None:
        if chunk.path not in self._files:
            self._files[chunk.path] = os.open(chunk.path, os.O_RDONLY)
        done = 0
        while done < len(view):
            count = os.preadv(self._files[chunk.path], [view[done:]], chunk.offset + done)
            if count == 0:
                raise OSError(f"{chunk.path} became shorter while it was read")
            done += count

    def _on_stream(self) -> AbstractContextManager[object]:
        return torch.cuda.stream(self._stream) if self._is_gpu else nullcontext()
