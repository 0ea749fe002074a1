"""The safetensors files of a model folder: which tensor is in which file, and whether all are whole. Loads none."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axon.engine.load.architecture import Architecture
from axon.engine.load.layout import file_shapes
from axon.engine.load.quantised.four_bit_layout import NUMBERS, OPTIONAL, FourBits, part_of
from axon.engine.load.quantised.fp8_layout import FP8_NAME, SCALE_SUFFIXES, scales_shape_problem
from axon.engine.load.quantised.mxfp4_layout import BLOCK, blocks_of, part_shapes
from axon.engine.load.quantised.quantisation import four_bits_of
from axon.errors import Misconfigured

INDEX = "model.safetensors.index.json"
_SHARD = re.compile(r"(.*)-\d{5}-of-(\d{5})\.safetensors\Z")
_FLOATS = {"F64", "F32", "F16", "BF16"}
_MAX_HEADER_BYTES = 100_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorInfo:
    """The file, shape and dtype of a tensor, and where in the file it lies."""

    path: Path
    shape: tuple[int, ...]
    dtype: str
    """As safetensors names it: F32, BF16, …"""
    offset: int
    """Its first byte, from the start of the file."""
    num_bytes: int


def find_tensors(model_dir: Path) -> dict[str, TensorInfo]:
    """Every tensor of the folder by its name; raises Misconfigured if a file is missing or truncated."""
    tensors: dict[str, TensorInfo] = {}
    for path in _files(model_dir):
        tensors |= read_header(path)
    return tensors


def check_tensors(model_dir: Path, architecture: Architecture) -> None:
    """Raises Misconfigured unless the folder has every tensor the model needs, in its shape and not quantised."""
    check_shapes(model_dir, file_shapes(architecture))


def check_shapes(model_dir: Path, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raises Misconfigured unless the folder has these tensors, in these shapes and not quantised."""
    tensors = find_tensors(model_dir)
    layout = four_bits_of(model_dir) if any(name.endswith(".qweight") for name in tensors) else None
    for name, shape in shapes.items():
        tensor = tensors.get(name)
        if tensor is None and part_of(name, "qweight") in tensors:
            _check_four_bits(name, shape, tensors, layout)
            continue
        if tensor is None and blocks_of(name) in tensors:
            _check_mxfp4(name, shape, tensors)
            continue
        if tensor is None:
            raise Misconfigured(f"{model_dir} has no tensor {name!r}")
        if tensor.dtype == FP8_NAME:
            _check_scales(name, tensor, tensors)
        elif tensor.dtype not in _FLOATS:
            raise Misconfigured(
                f"{name!r} in {tensor.path} is quantised ({tensor.dtype}): "
                "give the model in bfloat16, or as a GGUF file"
            )
        if tensor.shape != shape:
            raise Misconfigured(
                f"{name!r} in {tensor.path} is {list(tensor.shape)}; config.json makes it {list(shape)}"
            )


def scales_of(name: str, tensors: Mapping[str, TensorInfo]) -> str | None:
    """The name of the scales of a matrix in fp8."""
    return next((name + suffix for suffix in SCALE_SUFFIXES if name + suffix in tensors), None)


def _check_scales(name: str, tensor: TensorInfo, tensors: Mapping[str, TensorInfo]) -> None:
    scales = scales_of(name, tensors)
    if scales is None:
        raise Misconfigured(f"{name!r} in {tensor.path} is fp8 and has no scales: {name}_scale is missing")
    if tensors[scales].dtype not in _FLOATS:
        raise Misconfigured(f"{scales!r} in {tensors[scales].path} is {tensors[scales].dtype}, not a float")
    if problem := scales_shape_problem(tensor.shape, tensors[scales].shape):
        raise Misconfigured(f"{name!r} in {tensor.path}: {problem}")


def _check_four_bits(
    name: str, shape: tuple[int, ...], tensors: Mapping[str, TensorInfo], layout: FourBits | None
) -> None:
    if layout is None:
        raise Misconfigured(f"{name!r} is packed, and the config.json beside it does not say how: quantization_config")
    if any(size % NUMBERS for size in shape):
        raise Misconfigured(f"{name!r} cannot be packed: its sizes {list(shape)} are no multiples of {NUMBERS}")
    for part, expected in layout.part_shapes(shape).items():
        tensor = tensors.get(part_of(name, part))
        if tensor is None and part in OPTIONAL:
            continue
        if tensor is None:
            raise Misconfigured(f"{name!r} is packed into four bits, and {part_of(name, part)!r} is missing")
        if (part == "scales") != (tensor.dtype in _FLOATS) or (part != "scales" and tensor.dtype != "I32"):
            raise Misconfigured(f"{part_of(name, part)!r} in {tensor.path} cannot be {tensor.dtype}")
        if tensor.shape != expected:
            raise Misconfigured(
                f"{part_of(name, part)!r} in {tensor.path} is {list(tensor.shape)}; {layout.method} with groups of "
                f"{layout.group_size or 'all inputs'} makes it {list(expected)}"
            )


def _check_mxfp4(name: str, shape: tuple[int, ...], tensors: Mapping[str, TensorInfo]) -> None:
    if shape[1] % BLOCK:
        raise Misconfigured(f"{name!r} cannot be in MXFP4: its {shape[1]} inputs are no multiple of {BLOCK}")
    for part, expected in part_shapes(name, shape).items():
        tensor = tensors.get(part)
        if tensor is None:
            raise Misconfigured(f"{name!r} is in MXFP4, and {part!r} is missing")
        if tensor.dtype != "U8" or tensor.shape != expected:
            raise Misconfigured(
                f"{part!r} in {tensor.path} is {tensor.dtype} {list(tensor.shape)}; MXFP4 makes it U8 {list(expected)}"
            )


def _indexed(index: Path) -> list[str]:
    content = _read_json(index)
    file_of = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(file_of, dict) or not all(isinstance(name, str) for name in file_of.values()):
        raise Misconfigured(f"{index} does not say which tensor lies in which file")
    return sorted(set(file_of.values()))


def _files(model_dir: Path) -> list[Path]:
    """The files that the index names; without an index the single file, else all files of the folder."""
    index = model_dir / INDEX
    if index.is_file():
        names = _indexed(index)
    elif (model_dir / "model.safetensors").is_file():
        names = ["model.safetensors"]
    else:
        names = sorted(_with_missing_shards(path.name for path in model_dir.glob("*.safetensors")))
    if not names:
        raise Misconfigured(f"{model_dir} has no *.safetensors files{_advice(model_dir)}")
    for name in names:
        if not (model_dir / name).is_file():
            raise Misconfigured(f"{model_dir} is not complete: {name} is missing")
    return [model_dir / name for name in names]


def _with_missing_shards(names: Any) -> set[str]:
    """Adds the shards that should be there: a shard's name says how many there are."""
    found = set(names)
    for match in filter(None, map(_SHARD.match, list(found))):
        found |= {f"{match[1]}-{number:05}-of-{match[2]}.safetensors" for number in range(1, int(match[2]) + 1)}
    return found


def _advice(model_dir: Path) -> str:
    if files := sorted(model_dir.glob("*.gguf")):
        return f"; to serve a GGUF file, name the file itself: {files[0]}"
    if any(model_dir.glob("*.bin")) or any(model_dir.glob("*.pt*")):
        return "; weights pickled by PyTorch are not read, because they can run code: convert them to safetensors"
    return ""


def read_header(path: Path) -> dict[str, TensorInfo]:
    """Reads the header: its length in 8 bytes, little-endian, then JSON; the tensors follow it."""
    num_bytes = path.stat().st_size
    with path.open("rb") as file:
        header_bytes = int.from_bytes(file.read(8), "little")
        if not 2 <= header_bytes <= min(_MAX_HEADER_BYTES, num_bytes - 8):
            raise Misconfigured(f"{path} is cut short or no safetensors file")
        text = file.read(header_bytes)
    try:
        header: dict[str, Any] = json.loads(text)
        header.pop("__metadata__", None)
        expected = 8 + header_bytes + max((each["data_offsets"][1] for each in header.values()), default=0)
        tensors = {
            name: TensorInfo(
                path=path,
                shape=tuple(each["shape"]),
                dtype=each["dtype"],
                offset=8 + header_bytes + each["data_offsets"][0],
                num_bytes=each["data_offsets"][1] - each["data_offsets"][0],
            )
            for name, each in header.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        raise Misconfigured(f"{path} is no safetensors file: its header cannot be read") from None
    if num_bytes != expected:
        raise Misconfigured(f"{path} is cut short or damaged: it has {num_bytes} bytes instead of {expected}")
    return tensors


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise Misconfigured(f"{path} cannot be read: {error}") from None
    return content
