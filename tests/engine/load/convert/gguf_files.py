"""Writes tiny GGUF files: the weights of a model folder of the tests, laid out as the usual converter lays them out."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.quants import quantize
from safetensors.numpy import load_file
from tokenizers import pre_tokenizers

Array = npt.NDArray[Any]
CHAT_TEMPLATE = "{{ messages[0].content }}{{ eos_token }}"
CONTROL = 3
_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_tensors(folder: Path) -> dict[str, Array]:
    """A folder's tensors under the names, and with the rows in the order, that GGUF files have."""
    config = json.loads((folder / "config.json").read_text())
    is_permuted = config["model_type"] in ("llama", "mistral")
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    tensors = {}
    for name, values in load_file(folder / "model.safetensors").items():
        stem, suffix = name.rsplit(".", 1)
        num_heads = heads.get(stem.rsplit(".", 1)[-1])
        if is_permuted and num_heads:
            values = permute(values, num_heads)
        if stem.startswith("model.layers."):
            _, _, layer, stem = stem.split(".", 3)
            tensors[f"blk.{layer}.{_NAMES[stem]}.{suffix}"] = values
        else:
            tensors[f"{_NAMES[stem]}.{suffix}"] = values
    if (config.get("rope_scaling") or {}).get("rope_type") == "llama3":
        tensors["rope_freqs.weight"] = rope_factors(config)
    return tensors


def permute(weight: Array, num_heads: int) -> Array:
    """As the usual converter to GGUF does it."""
    rows, columns = weight.shape
    return weight.reshape(num_heads, 2, rows // num_heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def rope_factors(config: dict[str, Any]) -> Array:
    """Llama 3's scaling, worked out for each frequency as the usual converter does it."""
    scaling, factors = config["rope_scaling"], []
    factor, low, high = scaling["factor"], scaling["low_freq_factor"], scaling["high_freq_factor"]
    length = scaling["original_max_position_embeddings"]
    for index in range(0, config["head_dim"], 2):
        wave = 2 * math.pi * config["rope_theta"] ** (index / config["head_dim"])
        if wave < length / high:
            factors.append(1.0)
        elif wave > length / low:
            factors.append(factor)
        else:
            smooth = (length / wave - low) / (high - low)
            factors.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(factors, dtype=np.float32)


def byte_vocabulary(size: int) -> tuple[list[str], list[int], list[str]]:
    """Tokens, their kinds and merges: an end, the bytes, one merge, and control tokens that fill the vocabulary."""
    tokens = ["<|end|>", *sorted(pre_tokenizers.ByteLevel.alphabet()), "he"]
    kinds = [CONTROL] + [1] * (len(tokens) - 1)
    num_more = size - len(tokens)
    return [*tokens, *(f"<|{n}|>" for n in range(num_more))], [*kinds, *[CONTROL] * num_more], ["h e"]


def write_gguf(
    path: Path,
    folder: Path,
    *,
    architecture: str = "",
    kind: GGMLQuantizationType = GGMLQuantizationType.F32,
    pre: str = "smollm",
    tokenizer: str = "gpt2",
    template: str = CHAT_TEMPLATE,
    metadata: dict[str, Any] | None = None,
    without: str = "",
    more: dict[str, Array] | None = None,
) -> Path:
    """The folder's model as a GGUF file, its matrices quantised as ``kind``; ``without`` leaves one tensor out."""
    config = json.loads((folder / "config.json").read_text())
    model_type = config["model_type"]
    writer = GGUFWriter(path, architecture or ("llama" if model_type == "mistral" else model_type))
    _add_shape(writer, config)
    if tokenizer:
        tokens, kinds, merges = byte_vocabulary(config["vocab_size"])
        writer.add_tokenizer_model(tokenizer)
        writer.add_tokenizer_pre(pre)
        writer.add_token_list(tokens)
        writer.add_token_types(kinds)
        writer.add_token_merges(merges)
        writer.add_eos_token_id(0)
    if template:
        writer.add_chat_template(template)
    for key, value in (metadata or {}).items():
        _add_value(writer, key, value)
    for name, values in {**gguf_tensors(folder), **(more or {})}.items():
        if name == without:
            continue
        if values.ndim == 2 and kind != GGMLQuantizationType.F32:
            writer.add_tensor(name, quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, np.ascontiguousarray(values))
    _write(writer)
    return path


def _add_shape(writer: GGUFWriter, config: dict[str, Any]) -> None:
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])


def _add_value(writer: GGUFWriter, key: str, value: Any) -> None:
    add: dict[type, Any] = {
        str: writer.add_string,
        bool: writer.add_bool,
        int: writer.add_uint32,
        float: writer.add_float32,
    }
    add[type(value)](key, value)


def _write(writer: GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
