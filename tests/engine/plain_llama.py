"""A Llama as its paper writes it, in a few lines of float32 numpy: what engines are held to. Knows no cache."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file

Floats = npt.NDArray[np.float32]


def logprobs_of(folder: Path, token_ids: list[int]) -> Floats:
    """Log probabilities [position, vocabulary] of the token behind each token: a float32 softmax of the logits."""
    config = json.loads((folder / "config.json").read_text())
    weights = load_file(folder / "model.safetensors")
    hidden = weights["model.embed_tokens.weight"][token_ids]
    for index in range(config["num_hidden_layers"]):
        layer = {
            name.removeprefix(f"model.layers.{index}.").removesuffix(".weight"): weight
            for name, weight in weights.items()
            if name.startswith(f"model.layers.{index}.")
        }
        hidden = hidden + _attention(_norm(hidden, layer["input_layernorm"], config), layer, config)
        normed = _norm(hidden, layer["post_attention_layernorm"], config)
        gate, up = normed @ layer["mlp.gate_proj"].T, normed @ layer["mlp.up_proj"].T
        hidden = hidden + (gate / (1 + np.exp(-gate)) * up) @ layer["mlp.down_proj"].T
    head = "model.embed_tokens.weight" if config["tie_word_embeddings"] else "lm_head.weight"
    logits = _norm(hidden, weights["model.norm.weight"], config) @ weights[head].T
    shifted = logits - logits.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)), np.float32)


def _norm(rows: Floats, weight: Floats, config: dict[str, Any]) -> Floats:
    means = (rows * rows).mean(axis=-1, keepdims=True)
    return np.asarray(rows / np.sqrt(means + config["rms_norm_eps"]) * weight, np.float32)


def _attention(rows: Floats, layer: dict[str, Floats], config: dict[str, Any]) -> Floats:
    dim, num_heads, num_kv_heads = config["head_dim"], config["num_attention_heads"], config["num_key_value_heads"]
    queries, keys, values = ((rows @ layer[f"self_attn.{name}_proj"].T).reshape(len(rows), -1, dim) for name in "qkv")
    frequencies = config["rope_theta"] ** (-np.arange(0, dim, 2) / dim)
    angles = np.outer(np.arange(len(rows)), frequencies).astype(np.float32)[:, None, :]
    queries, keys = _rotated(queries, angles), _rotated(keys, angles)
    keys, values = (np.repeat(each, num_heads // num_kv_heads, axis=1) for each in (keys, values))
    scores = np.einsum("qhd,khd->hqk", queries, keys) / np.float32(np.sqrt(dim))
    scores = np.where(np.tri(len(rows), dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    seen = np.einsum("hqk,khd->qhd", weights, values).reshape(len(rows), -1)
    return np.asarray(seen @ layer["self_attn.o_proj"].T, np.float32)


def _rotated(rows: Floats, angles: Floats) -> Floats:
    first, second = np.split(rows, 2, axis=-1)
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
