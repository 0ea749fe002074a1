"""A model folder's weights as the kernels read them: int8 panels in one file, written once, mapped at start.

Knows no arithmetic beyond rounding. The file stands beside the model with a manifest that says what it was made from;
the manifest is written last, so a half-written file is never taken for a whole one.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import torch

from axon.engine.architecture import Architecture
from axon.engine.native.library import LANES
from axon.engine.weights import Weights

FORMAT = 1
FILE = "native-int8.bin"
MANIFEST = "native-int8.json"
_ALIGNMENT = 64

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]
Panels = npt.NDArray[np.int8]
Take = Callable[[str], Floats]


class Packed:
    """The mapped file: arrays by name, never copied."""

    def __init__(self, folder: Path) -> None:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        self._pieces: dict[str, Any] = manifest["pieces"]
        self._bytes = np.memmap(folder / FILE, mode="r")

    def __contains__(self, name: str) -> bool:
        return name in self._pieces

    def __getitem__(self, name: str) -> Array:
        offset, shape, dtype = self._pieces[name]
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        piece: Array = self._bytes[offset : offset + size].view(dtype).reshape(shape)
        return piece


def ensure_packed(architecture: Architecture, model_dir: Path, group_size: int, folder: Path | None = None) -> Packed:
    """Opens the packed weights, made first where they are missing or of another model, format or group size."""
    folder = folder or model_dir
    source = _fingerprint(model_dir, group_size)
    if not _is_packed(folder, source):
        with Weights(model_dir, torch.float32) as weights:
            _write(folder, source, _pieces(architecture, weights, group_size))
    return Packed(folder)


def quantise(weight: Floats, group_size: int) -> tuple[Panels, Floats]:
    """Rounds [output, input] to int8 with a scale per output, and lays it out in panels of 16 outputs.

    Panels are [output / 16, input / 4, 16, 4]; both sides are padded with zeros.
    """
    num_outputs, num_inputs = (_padded(weight.shape[0], LANES), _padded(weight.shape[1], group_size))
    padded = np.zeros((num_outputs, num_inputs), np.float32)
    padded[: weight.shape[0], : weight.shape[1]] = weight
    scales = np.abs(padded).max(axis=1) / np.float32(127)
    rounded = np.rint(padded / np.where(scales > 0, scales, 1)[:, None]).astype(np.int8)
    panels = rounded.reshape(num_outputs // LANES, LANES, num_inputs // 4, 4).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(panels), scales


def interleave(gate: Floats, up: Floats, group_size: int) -> Floats:
    """Gate and up take turns, 16 outputs each, so that one piece of the product has both sides of a SwiGLU."""
    size = _padded(gate.shape[0], group_size)
    both = np.zeros((2, size, gate.shape[1]), np.float32)
    both[0, : gate.shape[0]], both[1, : up.shape[0]] = gate, up
    return both.reshape(2, size // LANES, LANES, -1).transpose(1, 0, 2, 3).reshape(2 * size, -1)


def _pieces(architecture: Architecture, weights: Weights, group_size: int) -> Iterator[tuple[str, Array]]:
    def take(name: str) -> Floats:
        values: Floats = weights.take(name).numpy()
        return values

    def linear(name: str, weight: Floats) -> Iterator[tuple[str, Array]]:
        panels, scales = quantise(weight, group_size)
        yield f"{name}.panels", panels
        yield f"{name}.scales", scales

    yield from linear("embedding", take("model.embed_tokens.weight"))
    if not architecture.tied_embedding:
        yield from linear("head", take("lm_head.weight"))
    yield "norm", _pad_vector(take("model.norm.weight"), group_size)
    for index in range(architecture.num_layers):
        for name, value in _layer(architecture, take, f"model.layers.{index}", group_size):
            if value.ndim == 2:
                yield from linear(f"{index}.{name}", value)
            else:
                yield f"{index}.{name}", value


def _layer(architecture: Architecture, take: Take, prefix: str, group_size: int) -> Iterator[tuple[str, Floats]]:
    attention = [f"{prefix}.self_attn.{name}_proj" for name in ("q", "k", "v")]
    yield "input_norm", _pad_vector(take(f"{prefix}.input_layernorm.weight"), group_size)
    yield "mlp_norm", _pad_vector(take(f"{prefix}.post_attention_layernorm.weight"), group_size)
    yield "qkv", np.concatenate([take(f"{name}.weight") for name in attention])
    if architecture.qkv_bias:
        yield "bias", _pad_vector(np.concatenate([take(f"{name}.bias") for name in attention]), LANES)
    if architecture.qk_norm:
        yield "query_norm", take(f"{prefix}.self_attn.q_norm.weight")
        yield "key_norm", take(f"{prefix}.self_attn.k_norm.weight")
    yield "output", take(f"{prefix}.self_attn.o_proj.weight")
    gate, up = (take(f"{prefix}.mlp.{name}_proj.weight") for name in ("gate", "up"))
    yield "gate_up", interleave(gate, up, group_size)
    yield "down", take(f"{prefix}.mlp.down_proj.weight")


def _pad_vector(values: Floats, multiple: int) -> Floats:
    return np.pad(values, (0, _padded(len(values), multiple) - len(values)))


def _padded(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple


def _fingerprint(model_dir: Path, group_size: int) -> str:
    """Of the files the weights come from; their bytes are not read, or every start would cost seconds."""
    files = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in model_dir.glob("*.safetensors")]
    config = (model_dir / "config.json").read_text(encoding="utf-8")
    return hashlib.sha256(repr((FORMAT, group_size, sorted(files), config)).encode()).hexdigest()


def _is_packed(folder: Path, source: str) -> bool:
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return bool(manifest["source"] == source and manifest["num_bytes"] == (folder / FILE).stat().st_size)
    except (OSError, ValueError, KeyError):
        return False


def _write(folder: Path, source: str, pieces: Iterator[tuple[str, Array]]) -> None:
    places: dict[str, tuple[int, tuple[int, ...], str]] = {}
    (folder / MANIFEST).unlink(missing_ok=True)
    with _replacing(folder / FILE) as file:
        for name, array in pieces:
            file.write(b"\0" * (-file.tell() % _ALIGNMENT))
            places[name] = (file.tell(), array.shape, array.dtype.str)
            file.write(array.data)
        num_bytes = file.tell()
    with _replacing(folder / MANIFEST) as file:
        file.write(json.dumps({"source": source, "num_bytes": num_bytes, "pieces": places}).encode())


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes its place only when it is whole and on disk."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, delete=False) as file:
        try:
            yield file.file
            file.flush()
            os.fsync(file.fileno())
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
