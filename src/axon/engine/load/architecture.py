"""A model's shape, read from its folder's config.json. Knows no tensors."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axon.engine.load.quantisation import check_quantisation, is_fp8
from axon.errors import Misconfigured

SUPPORTED = ("llama", "mistral", "qwen2", "qwen3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rope:
    """Rotary position embedding: how positions rotate queries and keys."""

    theta: float = 10000.0
    kind: str = "default"
    """``default``, ``linear``, ``llama3`` or ``factors``."""
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_max_len: int = 8192
    factors: tuple[float, ...] = ()
    """Divisor of each frequency, where a file gives them one by one."""

    def frequencies(self, head_dim: int) -> list[float]:
        """Radians per position of each pair of dimensions."""
        plain = [self.theta ** (-2 * index / head_dim) for index in range(head_dim // 2)]
        if self.kind == "linear":
            return [frequency / self.factor for frequency in plain]
        if self.kind == "llama3":
            return [self._stretch(frequency) for frequency in plain]
        if self.kind == "factors":
            return [frequency / factor for frequency, factor in zip(plain, self.factors, strict=True)]
        return plain

    def _stretch(self, frequency: float) -> float:
        """Llama 3.1: divides low frequencies by ``factor``, keeps high ones, interpolates between."""
        rotations = self.original_max_len * frequency / (2 * math.pi)
        blend = (rotations - self.low_freq_factor) / (self.high_freq_factor - self.low_freq_factor)
        blend = min(1.0, max(0.0, blend))
        return (1 - blend) * frequency / self.factor + blend * frequency


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A decoder of the Llama family: Llama, Mistral, Qwen 2.5 and Qwen 3 differ in the last fields alone."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rms_norm_eps: float
    rope: Rope
    tied_embedding: bool
    max_model_len: int
    eos_ids: frozenset[int]
    qkv_bias: bool = False
    """Qwen 2.5: queries, keys and values have a bias."""
    qk_norm: bool = False
    """Qwen 3: each head's queries and keys are normalised before they are rotated."""
    is_fp8: bool = False
    """The checkpoint keeps its matrices in fp8."""

    @property
    def group_size(self) -> int:
        """Query heads that share a KV head."""
        return self.num_heads // self.num_kv_heads

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors a checkpoint must have, by the names Hugging Face gives them."""
        shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (self.vocab_size, self.hidden_size)}
        for index in range(self.num_layers):
            shapes |= {f"model.layers.{index}.{name}": shape for name, shape in self._layer_shapes().items()}
        shapes["model.norm.weight"] = (self.hidden_size,)
        if not self.tied_embedding:
            shapes["lm_head.weight"] = (self.vocab_size, self.hidden_size)
        return shapes

    def _layer_shapes(self) -> dict[str, tuple[int, ...]]:
        hidden, inner = self.hidden_size, self.intermediate_size
        sizes = {"q": self.num_heads * self.head_dim, "k": self.num_kv_heads * self.head_dim}
        sizes["v"] = sizes["k"]
        shapes: dict[str, tuple[int, ...]] = {
            "input_layernorm.weight": (hidden,),
            "post_attention_layernorm.weight": (hidden,),
            "self_attn.o_proj.weight": (hidden, sizes["q"]),
            "mlp.gate_proj.weight": (inner, hidden),
            "mlp.up_proj.weight": (inner, hidden),
            "mlp.down_proj.weight": (hidden, inner),
        }
        shapes |= {f"self_attn.{name}_proj.weight": (size, hidden) for name, size in sizes.items()}
        if self.qkv_bias:
            shapes |= {f"self_attn.{name}_proj.bias": (size,) for name, size in sizes.items()}
        if self.qk_norm:
            shapes |= {f"self_attn.{name}_norm.weight": (self.head_dim,) for name in "qk"}
        return shapes


_MOST = {
    "vocab_size": 1 << 30,
    "hidden_size": 1 << 24,
    "intermediate_size": 1 << 24,
    "num_hidden_layers": 10_000,
    "num_attention_heads": 1 << 16,
    "num_key_value_heads": 1 << 16,
    "head_dim": 1 << 16,
    "max_position_embeddings": 1 << 40,
}
"""Sizes in a config.json, and what none of them exceeds."""
_DERIVED = ("num_key_value_heads", "head_dim")
"""Sizes that follow from the others where they are null or 0."""


def read_architecture(model_dir: Path) -> Architecture:
    """Reads config.json (and generation_config.json) as Hugging Face folders have them; raises Misconfigured."""
    config = _read_json(model_dir / "config.json")
    if config is None:
        raise Misconfigured(f"{model_dir} is not a model folder: it has no config.json")
    try:
        _refuse_unsupported(config)
        _check_sizes(config)
        return Architecture(
            vocab_size=config["vocab_size"],
            hidden_size=config["hidden_size"],
            intermediate_size=config["intermediate_size"],
            num_layers=config["num_hidden_layers"],
            num_heads=config["num_attention_heads"],
            num_kv_heads=config.get("num_key_value_heads") or config["num_attention_heads"],
            head_dim=config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"],
            rms_norm_eps=config.get("rms_norm_eps", 1e-6),
            rope=_read_rope(config),
            tied_embedding=config.get("tie_word_embeddings", False),
            max_model_len=min(config["max_position_embeddings"], _read_window(config)),
            eos_ids=_read_eos_ids(config, _read_json(model_dir / "generation_config.json") or {}),
            qkv_bias=config["model_type"] == "qwen2",
            qk_norm=config["model_type"] == "qwen3",
            is_fp8=is_fp8(config.get("quantization_config")),
        )
    except KeyError as error:
        raise Misconfigured(f"{model_dir}/config.json does not say {error}") from error
    except (TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise Misconfigured(f"{model_dir}/config.json cannot be understood: {error}") from error


def _check_sizes(config: dict[str, Any]) -> None:
    """Raises ``ValueError`` for a size that no model has; one that is missing is found later."""
    for name, most in _MOST.items():
        size = config.get(name)
        if name not in config or (not size and name in _DERIVED):
            continue
        if type(size) is not int or not 0 < size <= most:
            raise ValueError(f"{name} is no whole number from 1 to {most:,}")


def _refuse_unsupported(config: dict[str, Any]) -> None:
    model_type = config.get("model_type")
    if model_type not in SUPPORTED:
        raise Misconfigured(f"models of type {model_type!r} are not supported yet; {', '.join(SUPPORTED)} are")
    for bias in ("attention_bias", "mlp_bias"):
        if config.get(bias):
            raise Misconfigured(f"{model_type} models with biases ({bias}) are not supported yet")
    if quantisation := config.get("quantization_config"):
        check_quantisation(quantisation)
    if config.get("hidden_act", "silu") != "silu":
        raise Misconfigured(f"an activation of type {config['hidden_act']!r} is not supported yet")


def _read_window(config: dict[str, Any]) -> int:
    """The length of the sliding window: within it, full attention is the same."""
    is_used = config.get("use_sliding_window", config["model_type"] == "mistral")
    window = config.get("sliding_window") if is_used else None
    return int(window or config["max_position_embeddings"])


def _read_rope(config: dict[str, Any]) -> Rope:
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = scaling.get("rope_type") or scaling.get("type") or "default"
    if kind not in ("default", "linear", "llama3", "factors"):
        raise Misconfigured(f"rope scaling of type {kind!r} is not supported yet")
    if (scaling.get("partial_rotary_factor") or config.get("partial_rotary_factor") or 1.0) != 1.0:
        raise Misconfigured("models that rotate only a part of each head are not supported yet")
    return Rope(
        theta=scaling.get("rope_theta") or config.get("rope_theta", 10000.0),
        kind=kind,
        factor=scaling.get("factor", 1.0),
        low_freq_factor=scaling.get("low_freq_factor", 1.0),
        high_freq_factor=scaling.get("high_freq_factor", 4.0),
        original_max_len=scaling.get("original_max_position_embeddings", 8192),
        factors=tuple(scaling.get("factors", ())),
    )


def _read_eos_ids(config: dict[str, Any], generation: dict[str, Any]) -> frozenset[int]:
    eos = generation.get("eos_token_id", config.get("eos_token_id"))
    if eos is None:
        return frozenset()
    return frozenset([eos] if isinstance(eos, int) else eos)


def _read_json(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise Misconfigured(f"{path} cannot be read: {error}") from None
    except RecursionError:
        raise Misconfigured(f"{path} cannot be read: it is nested too deeply") from None
    if not isinstance(content, dict):
        raise Misconfigured(f"{path} cannot be read: it is no JSON object")
    return content
