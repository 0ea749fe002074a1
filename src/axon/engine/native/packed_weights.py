"""A model folder's weights in the kernels' layout: int8 panels in one file, written once, memory-mapped at start.

The file is kept beside the model, or in the cache of the user's home if the model's folder is read-only.
"""

import hashlib
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from axon.engine.load.architecture import Architecture, Experts
from axon.engine.load.family import LayerNorms
from axon.engine.native.library import LANES
from axon.engine.native.packed_file import Array, PackedFile, open_file, write_file

if TYPE_CHECKING:
    from axon.engine.load.arranged import Arranged
    from axon.engine.load.weights import Weights

logger = logging.getLogger(__name__)

FORMAT = 4
FILE = "native-int8.bin"
_OLD_MANIFEST = "native-int8.json"
"""Stood beside the file in formats before 3."""
MOST_BYTES = 64 << 30
"""Bytes of packed weights that are kept for models in read-only folders."""

Floats = npt.NDArray[np.float32]
Panels = npt.NDArray[np.int8]
Halves = npt.NDArray[np.uint16]
Take = Callable[[str], Floats]


def default_folder() -> Path:
    """The cache for the weights of models in read-only folders."""
    return Path.home() / ".cache" / "axon" / "packed"


def ensure_packed(
    architecture: Architecture,
    model_dir: Path,
    group_size: int,
    spare: Path | None = None,
    most_bytes: int = MOST_BYTES,
) -> PackedFile:
    """Maps the packed weights; makes them if they are missing, damaged, or of another model, format or group size.

    They are kept beside the model, or in a folder below ``spare`` if the model's folder is read-only. There those used
    least recently are removed beyond ``most_bytes``.
    """
    source = _fingerprint(model_dir, group_size)
    cache = spare or default_folder()
    elsewhere = cache / source[:16]
    for folder in (model_dir, elsewhere):
        if packed := open_file(folder / FILE, source):
            _mark_used(folder, elsewhere)
            return packed
    folder = model_dir if os.access(model_dir, os.W_OK) else elsewhere
    logger.warning(
        "packing the weights as int8 (once, some seconds) into %s",
        folder,
        extra={"axon_event": "engine.weights_packed"},
    )
    folder.mkdir(parents=True, exist_ok=True)
    import torch  # only here: a start that finds its packed weights does without it

    from axon.engine.load.arranged import arranged
    from axon.engine.load.weights import Weights

    with Weights(model_dir, torch.float32) as weights:
        packed = write_file(folder / FILE, source, _pieces(architecture, arranged(weights, architecture), group_size))
    (folder / _OLD_MANIFEST).unlink(missing_ok=True)
    if folder == elsewhere:
        _remove_oldest(cache, most_bytes, but=folder)
    return packed


def _mark_used(folder: Path, elsewhere: Path) -> None:
    if folder == elsewhere:
        with suppress(OSError):
            os.utime(folder)


def _remove_oldest(cache: Path, most_bytes: int, *, but: Path) -> None:
    """Removes the folders used least recently until the rest has ``most_bytes``; mapped files stay readable."""
    folders = [each for each in cache.iterdir() if (each / FILE).is_file()]
    left = sum((each / FILE).stat().st_size for each in folders)
    for folder in sorted(folders, key=lambda each: each.stat().st_mtime_ns):
        if left <= most_bytes:
            return
        if folder != but:
            left -= (folder / FILE).stat().st_size
            shutil.rmtree(folder, ignore_errors=True)


def quantise(weight: Floats, group_size: int) -> tuple[Panels, Halves]:
    """Quantises [output, input] to int8 with a scale per output and group of inputs, in panels of 16 outputs.

    Panels are [output / 16, input / 4, 16, 4], scales [output / 16, group, 16]; both sides are padded with zeros.
    """
    num_outputs, num_inputs = (_padded(weight.shape[0], LANES), _padded(weight.shape[1], group_size))
    padded = np.zeros((num_outputs, num_inputs), np.float32)
    padded[: weight.shape[0], : weight.shape[1]] = weight
    groups = padded.reshape(num_outputs, num_inputs // group_size, group_size)
    halves = upper_halves(np.abs(groups).max(axis=2) / np.float32(127))
    scales = from_halves(halves)[:, :, None]
    rounded = np.rint(groups / np.where(scales > 0, scales, 1)).astype(np.int8)
    panels = rounded.reshape(num_outputs // LANES, LANES, num_inputs // 4, 4).transpose(0, 2, 1, 3)
    laid_out = halves.reshape(num_outputs // LANES, LANES, -1).transpose(0, 2, 1)
    return np.ascontiguousarray(panels), np.ascontiguousarray(laid_out)


def upper_halves(values: Floats) -> Halves:
    """Floats as bfloat16 bits, rounded up: with such scales no quantised weight exceeds 127."""
    return ((values.view(np.uint32) + np.uint32(0xFFFF)) >> 16).astype(np.uint16)


def from_halves(halves: Halves) -> Floats:
    """The floats of bfloat16 bits, as the kernels widen them."""
    return (halves.astype(np.uint32) << 16).view(np.float32)


def interleave(gate: Floats, up: Floats, group_size: int) -> Floats:
    """Alternates gate and up, 16 outputs each, so that one panel pair of the product has both sides of a SwiGLU."""
    size = _padded(gate.shape[0], group_size)
    both = np.zeros((2, size, gate.shape[1]), np.float32)
    both[0, : gate.shape[0]], both[1, : up.shape[0]] = gate, up
    return both.reshape(2, size // LANES, LANES, -1).transpose(1, 0, 2, 3).reshape(2 * size, -1)


def _pieces(architecture: Architecture, weights: "Weights | Arranged", group_size: int) -> Iterator[tuple[str, Array]]:
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
    yield "norm", pad_vector(take("model.norm.weight"), group_size)
    for index in range(architecture.num_layers):
        prefix = f"model.layers.{index}"
        attention = _attention(architecture, take, prefix, group_size)
        for name, value in chain(attention, _mlp(architecture.experts_of(index), take, f"{prefix}.mlp", group_size)):
            if value.ndim == 2:
                yield from linear(f"{index}.{name}", value)
            else:
                yield f"{index}.{name}", value


def _attention(architecture: Architecture, take: Take, prefix: str, group_size: int) -> Iterator[tuple[str, Floats]]:
    attention = [f"{prefix}.self_attn.{name}_proj" for name in ("q", "k", "v")]
    yield from _norms(architecture.family.norms, take, prefix, group_size)
    yield "qkv", np.concatenate([take(f"{name}.weight") for name in attention])
    if architecture.qkv_bias:
        yield "qkv.bias", pad_vector(np.concatenate([take(f"{name}.bias") for name in attention]), LANES)
    if architecture.qk_norm:
        yield "query_norm", take(f"{prefix}.self_attn.q_norm.weight")
        yield "key_norm", take(f"{prefix}.self_attn.k_norm.weight")
    yield "output", take(f"{prefix}.self_attn.o_proj.weight")
    if architecture.family.output_bias:
        yield "output.bias", pad_vector(take(f"{prefix}.self_attn.o_proj.bias"), LANES)
    if architecture.family.has_sinks:
        yield "sinks", take(f"{prefix}.self_attn.sinks")


def _norms(norms: LayerNorms, take: Take, prefix: str, group_size: int) -> Iterator[tuple[str, Floats]]:
    names = {"input_norm": norms.input, "mlp_norm": norms.mlp}
    names |= {"attention_post": norms.attention_post, "mlp_post": norms.mlp_post}
    for name, theirs in names.items():
        if theirs:
            yield name, pad_vector(take(f"{prefix}.{theirs}.weight"), group_size)


def _mlp(experts: Experts | None, take: Take, prefix: str, group_size: int) -> Iterator[tuple[str, Floats]]:
    if experts is None:
        yield from _gated(take, prefix, "", group_size)
        return
    yield "router", float_panels(take(f"{prefix}.gate.weight"), group_size)
    if experts.has_bias:
        yield "router_bias", pad_vector(take(f"{prefix}.gate.bias"), LANES)
    for index in range(experts.count):
        names = f"{prefix}.experts.{index}", f"experts.{index}."
        yield from _gated(take, *names, group_size)
        if experts.has_bias:
            yield from _gated_biases(take, *names, group_size)


def _gated(take: Take, prefix: str, name: str, group_size: int) -> Iterator[tuple[str, Floats]]:
    gate, up = (take(f"{prefix}.{side}_proj.weight") for side in ("gate", "up"))
    yield f"{name}gate_up", interleave(gate, up, group_size)
    yield f"{name}down", take(f"{prefix}.down_proj.weight")


def _gated_biases(take: Take, prefix: str, name: str, group_size: int) -> Iterator[tuple[str, Floats]]:
    gate, up = (take(f"{prefix}.{side}_proj.bias")[:, None] for side in ("gate", "up"))
    yield f"{name}gate_up.bias", interleave(gate, up, group_size).reshape(-1)
    yield f"{name}down.bias", pad_vector(take(f"{prefix}.down_proj.bias"), LANES)


def float_panels(weight: Floats, group_size: int) -> Floats:
    """[output, input] in float32 panels of 16 outputs, [output / 16, input, 16], padded with zeros."""
    num_outputs, num_inputs = (_padded(weight.shape[0], LANES), _padded(weight.shape[1], group_size))
    padded = np.zeros((num_outputs, num_inputs), np.float32)
    padded[: weight.shape[0], : weight.shape[1]] = weight
    return np.ascontiguousarray(padded.reshape(-1, LANES, num_inputs).transpose(0, 2, 1))


def pad_vector(values: Floats, multiple: int) -> Floats:
    """The vector with zeros behind it, up to a multiple of so many."""
    return np.pad(values, (0, _padded(len(values), multiple) - len(values)))


def _padded(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple


def _fingerprint(model_dir: Path, group_size: int) -> str:
    """Identifies the weights by names, sizes and times of their files; hashing their bytes would take seconds."""
    files = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in model_dir.glob("*.safetensors")]
    config = (model_dir / "config.json").read_text(encoding="utf-8")
    return hashlib.sha256(repr((FORMAT, group_size, sorted(files), config)).encode()).hexdigest()
