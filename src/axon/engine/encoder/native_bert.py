"""Encoders of the BERT family on the native kernels, in float32 or int8. Knows no text, no request and no torch.

An input's vector is bitwise the same alone and in any batch, with any number of threads, and on every instruction set.
"""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from axon.engine.encoder.packing import by_length, put_back
from axon.engine.load.arrays import Arrays, Floats
from axon.engine.load.encoder import Encoder, read_encoder, tensor_prefix
from axon.engine.native import library
from axon.engine.native.build import GROUP_SIZE
from axon.engine.native.packed_weights import quantise
from axon.errors import Misconfigured

Ints = npt.NDArray[np.int32]
Dtype = Literal["float32", "int8"]
_ACTIVATIONS = {"gelu": 0, "gelu_new": 1, "gelu_pytorch_tanh": 1, "relu": 2}
_POOLINGS = {"mean": 0, "cls": 1, "max": 2, "lasttoken": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """A batch as the kernels take it: the rows of all inputs one below the other."""

    tokens: Ints
    positions: Ints
    types: Ints
    starts: Ints
    """The first row of each input, and behind them the number of rows."""


class NativeBert:
    """A BERT, RoBERTa or XLM-RoBERTa with the pooling of its sentence-transformers configuration."""

    def __init__(
        self,
        model_dir: Path,
        *,
        threads: int,
        dtype: Dtype = "float32",
        max_model_len: int = 0,
        between: Callable[[], None] = lambda: None,
        instruction_set: str = "",
    ) -> None:
        """``between`` is called between the stages of a pass, where the cores may be passed on for a while.

        Raises NotBuilt without the kernels, and Misconfigured for a shape that they do not support.
        """
        self._shape = shape = read_encoder(model_dir)
        refuse_unsupported(shape, dtype)
        self._library = library.load()
        self.max_model_len = min(max_model_len or shape.max_model_len, shape.max_model_len)
        self.vocab_size = shape.vocab_size
        self.kernel = library.encoder_kernel_id(dtype)
        self._between = between
        native = _native_shape(shape)
        handle = self._library.axon_create_encoder(ctypes.byref(native), threads, instruction_set.encode())
        if handle is None:
            raise Misconfigured(f"no memory for the model, or no instruction set {instruction_set!r} here")
        self._handle: int | None = handle
        self._kept: list[npt.NDArray[Any]] = []
        self._load(Arrays(model_dir, tensor_prefix(model_dir)), dtype)

    def encode(self, batch: Sequence[Sequence[int]], second_starts: Sequence[int] = ()) -> list[bytes]:
        """The vectors of the inputs, in order.

        From an index of ``second_starts`` on, an input's tokens have the second type; 0 stands for a single text.
        """
        assert self._handle is not None, "closed"
        order = by_length(batch)
        rows = self._rows([batch[index] for index in order], [second_starts[index] for index in order if second_starts])
        vectors = np.empty((len(batch), self._shape.hidden_size), np.float32)
        for stage in range(2 * self._shape.num_layers):
            if stage:
                self._between()
            self._compute(rows, stage, vectors)
        return put_back(order, (vector.tobytes() for vector in vectors.astype("<f4", copy=False)))

    def _rows(self, inputs: Sequence[Sequence[int]], second_starts: Sequence[int]) -> _Rows:
        starts = np.array([0, *accumulate(map(len, inputs))], np.int32)
        first, num_rows = self._shape.first_position, int(starts[-1])
        types = np.zeros(num_rows, np.int32)
        for start, length, second in zip(starts, map(len, inputs), second_starts, strict=False):
            if second and self._shape.num_types > 1:
                types[start + second : start + length] = 1
        return _Rows(
            tokens=np.fromiter((token_id for each in inputs for token_id in each), np.int32, num_rows),
            positions=np.concatenate([np.arange(first, first + len(each), dtype=np.int32) for each in inputs]),
            types=types,
            starts=starts,
        )

    def _compute(self, rows: _Rows, stage: int, vectors: Floats) -> None:
        result = self._library.axon_encode(
            self._handle,
            library.address(rows.tokens),
            library.address(rows.positions),
            library.address(rows.types),
            len(rows.tokens),
            library.address(rows.starts),
            len(rows.starts) - 1,
            stage,
            stage + 1,
            library.address(vectors),
        )
        if result != 0:
            raise MemoryError(f"no memory for {len(rows.tokens)} tokens")

    def close(self) -> None:
        """Ends the threads and frees the memory; a second call does nothing."""
        if self._handle is not None:
            self._library.axon_destroy_encoder(self._handle)
            self._handle = None

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()

    def _load(self, arrays: Arrays, dtype: Dtype) -> None:
        def both(name: str) -> tuple[Floats, Floats]:
            return arrays.take(f"{name}.weight"), arrays.take(f"{name}.bias")

        embeddings = (
            arrays.take("embeddings.word_embeddings.weight"),
            arrays.take("embeddings.position_embeddings.weight"),
            arrays.take("embeddings.token_type_embeddings.weight"),
            *both("embeddings.LayerNorm"),
        )
        for which, values in enumerate(embeddings):
            self._set_vector(-1, which, values)
        for index in range(self._shape.num_layers):
            layer = f"encoder.layer.{index}"
            stacked = [both(f"{layer}.attention.self.{each}") for each in ("query", "key", "value")]
            products = (
                (np.concatenate([weight for weight, _ in stacked]), np.concatenate([bias for _, bias in stacked])),
                both(f"{layer}.attention.output.dense"),
                both(f"{layer}.intermediate.dense"),
                both(f"{layer}.output.dense"),
            )
            for which, (weight, bias) in enumerate(products):
                self._set_linear(index, which, weight, bias, dtype)
            norms = (*both(f"{layer}.attention.output.LayerNorm"), *both(f"{layer}.output.LayerNorm"))
            for which, values in enumerate(norms):
                self._set_vector(index, which, values)

    def _set_linear(self, layer: int, which: int, weight: Floats, bias: Floats, dtype: Dtype) -> None:
        panels: npt.NDArray[Any]
        scales: npt.NDArray[Any] | None = None
        if dtype == "int8":
            panels, scales = quantise(weight, GROUP_SIZE)
        else:
            panels = pack(weight)
        self._kept += [panels, bias, *([scales] if scales is not None else [])]
        self._library.axon_set_encoder_linear(
            self._handle,
            layer,
            which,
            library.address(panels),
            library.address(scales),
            library.address(bias),
            len(panels),
            weight.shape[1],
        )

    def _set_vector(self, layer: int, which: int, values: Floats) -> None:
        self._kept.append(values)
        self._library.axon_set_encoder_vector(self._handle, layer, which, library.address(values))


def pack(weight: Floats) -> Floats:
    """Lays [output, input] out in panels of 16 outputs, [output / 16, input, 16]."""
    num_outputs, num_inputs = weight.shape
    panels = weight.reshape(num_outputs // library.LANES, library.LANES, num_inputs).transpose(0, 2, 1)
    return np.ascontiguousarray(panels)


def refuse_unsupported(shape: Encoder, dtype: Dtype) -> None:
    """Raises Misconfigured for sizes that do not fill the kernels' vectors, and groups in int8."""
    multiple = library.LANES if dtype == "float32" else GROUP_SIZE
    sizes = (shape.hidden_size, shape.intermediate_size)
    if any(size % multiple for size in sizes) or shape.head_dim % library.LANES or shape.hidden_size % shape.num_heads:
        raise Misconfigured(f"the native kernels have no encoders of {sizes} with {shape.num_heads} heads in {dtype}")


def _native_shape(shape: Encoder) -> library.EncoderShape:
    return library.EncoderShape(
        shape.hidden_size,
        shape.intermediate_size,
        shape.num_layers,
        shape.num_heads,
        _ACTIVATIONS[shape.activation],
        _POOLINGS[shape.pooling],
        int(shape.normalizes),
        shape.norm_eps,
    )
