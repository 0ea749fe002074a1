"""The model that is drafted for, in plain PyTorch: features and logits of whole texts, and steps of many texts."""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch.nn import functional

Tensor = torch.Tensor


def feature_layers(num_layers: int) -> tuple[int, int, int]:
    """The layers whose inputs are a position's features, as EAGLE-3 has them."""
    return 2, num_layers // 2, num_layers - 3


class Rotary:
    """Rotates heads by their positions, with halves as pairs."""

    def __init__(self, dim: int, theta: float, length: int, device: torch.device) -> None:
        inverse = theta ** (-torch.arange(0, dim, 2, device=device, dtype=torch.float64) / dim)
        angles = torch.outer(torch.arange(length, device=device, dtype=torch.float64), inverse)
        self.cos, self.sin = angles.cos().float(), angles.sin().float()

    def rotate(self, heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """``heads``: [..., length, dim]; ``cos`` and ``sin``: [length, dim / 2]."""
        first, second = heads.float().chunk(2, -1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), -1).to(heads.dtype)


def norm(rows: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """The RMS norm, computed in float32."""
    wide = rows.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon)).to(rows.dtype) * weight


class Target:
    """A Llama without biases, in bfloat16, from a model folder."""

    def __init__(
        self, folder: Path, device: torch.device, *, max_len: int, dtype: torch.dtype = torch.bfloat16
    ) -> None:
        self.config = config = json.loads((folder / "config.json").read_text())
        self.device, self.dtype, self.max_len = device, dtype, max_len
        self.weights = {
            name.removeprefix("model."): each.to(device, dtype)
            for name, each in load_file(folder / "model.safetensors").items()
        }
        self.hidden, self.num_layers = config["hidden_size"], config["num_hidden_layers"]
        self.heads, self.kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
        self.dim = config.get("head_dim") or self.hidden // self.heads
        self.epsilon = config["rms_norm_eps"]
        self.rotary = Rotary(self.dim, config["rope_theta"], max_len, device)
        self.embedding = self.weights["embed_tokens.weight"]
        self.output = self.embedding if config["tie_word_embeddings"] else self.weights["lm_head.weight"]
        self.cache = Tensor()

    @torch.no_grad()
    def read(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Features [text, position, 3 x hidden] and last rows [text, position, hidden] of texts of one length."""
        rows, kept = self.embedding[tokens], list[Tensor]()
        cos, sin = self.rotary.cos[: tokens.shape[1]], self.rotary.sin[: tokens.shape[1]]
        for layer in range(self.num_layers):
            if layer in feature_layers(self.num_layers):
                kept.append(rows)
            query, key, value = self._qkv(layer, rows)
            query, key = self.rotary.rotate(query, cos, sin), self.rotary.rotate(key, cos, sin)
            seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
            rows = self._behind_attention(layer, rows, seen.transpose(1, 2).flatten(2))
        return torch.cat(kept, -1), norm(rows, self.weights["norm.weight"], self.epsilon)

    def open_cache(self, num_texts: int) -> None:
        """Makes room for keys and values of so many texts."""
        shape = (self.num_layers, 2, num_texts, self.kv_heads, self.max_len, self.dim)
        self.cache = torch.zeros(shape, device=self.device, dtype=self.dtype)

    @torch.no_grad()
    def step(self, tokens: Tensor, position: Tensor, length: int) -> Tensor:
        """The logits behind one token of each text, all at ``position``, which is below ``length``."""
        rows = self.embedding[tokens][:, None]
        cos, sin = self.rotary.cos[position], self.rotary.sin[position]
        hidden_from = torch.arange(length, device=self.device) > position
        for layer in range(self.num_layers):
            query, key, value = self._qkv(layer, rows)
            keys, values = self.cache[layer]
            keys.index_copy_(2, position, self.rotary.rotate(key, cos, sin))
            values.index_copy_(2, position, value)
            grouped = self.rotary.rotate(query, cos, sin).view(len(tokens), self.kv_heads, -1, self.dim)
            scores = grouped @ keys[:, :, :length].transpose(2, 3) * self.dim**-0.5
            weights = scores.float().masked_fill(hidden_from, -torch.inf).softmax(-1).to(self.dtype)
            seen = weights @ values[:, :, :length]
            rows = self._behind_attention(layer, rows, seen.reshape(len(tokens), 1, -1))
        return norm(rows[:, 0], self.weights["norm.weight"], self.epsilon) @ self.output.T

    def _qkv(self, layer: int, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values: [text, head, position, dim]."""
        normed = norm(rows, self.weights[f"layers.{layer}.input_layernorm.weight"], self.epsilon)
        query, key, value = (
            functional.linear(normed, self.weights[f"layers.{layer}.self_attn.{name}_proj.weight"])
            .view(*rows.shape[:2], -1, self.dim)
            .transpose(1, 2)
            for name in "qkv"
        )
        return query, key, value

    def _behind_attention(self, layer: int, rows: Tensor, seen: Tensor) -> Tensor:
        start = f"layers.{layer}."
        rows = rows + functional.linear(seen, self.weights[f"{start}self_attn.o_proj.weight"])
        normed = norm(rows, self.weights[f"{start}post_attention_layernorm.weight"], self.epsilon)
        gate = functional.silu(functional.linear(normed, self.weights[f"{start}mlp.gate_proj.weight"]))
        inner = gate * functional.linear(normed, self.weights[f"{start}mlp.up_proj.weight"])
        return rows + functional.linear(inner, self.weights[f"{start}mlp.down_proj.weight"])
