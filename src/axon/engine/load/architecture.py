"""A model's shape, read from its folder's config.json. Knows no tensors."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from axon.engine.load.config_numbers import check_sizes, read_epsilon
from axon.engine.load.family import FAMILIES, ExpertKeys, Family, family_of
from axon.engine.load.quantised.quantisation import check_quantisation, is_fp8
from axon.engine.load.rope import Rope, positive, read_rope, rope_kind, trained_len
from axon.errors import Misconfigured, UnknownModel

Shapes = dict[str, tuple[int, ...]]
"""Shapes of tensors by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """A mixture of experts: MLPs of which a router chooses a few for each token."""

    count: int
    per_token: int
    """Experts that compute a token: those with the largest probabilities."""
    inner_size: int
    normalises: bool
    """Whether the probabilities of a token's experts are scaled to a sum of 1."""
    has_bias: bool = False
    """gpt-oss: the router and the products of the experts have biases."""
    limit: float = 0.0
    """gpt-oss: gates above this and ups beyond it on both sides are clamped, and 1 is added to ups; 0: neither."""
    slope: float = 1.0
    """The gate's activation is gate x sigmoid(slope x gate)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A decoder of the Llama family or of one of its relatives, which differ in the last fields alone."""

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
    model_type: str = "llama"
    """Its key in the table of families."""
    qkv_bias: bool = False
    """Qwen 2.5 and gpt-oss: queries, keys and values have a bias."""
    qk_norm: bool = False
    """Qwen 3: each head's queries and keys are normalised before they are rotated."""
    is_fp8: bool = False
    """The checkpoint keeps its matrices in fp8."""
    experts: Experts | None = None
    dense_layers: frozenset[int] = frozenset()
    """The layers of a mixture of experts that have a plain MLP."""
    windows: tuple[int, ...] = ()
    """The sliding window of each layer in tokens, the query's own included; 0: the layer sees all. Empty: all do."""
    local_rope: Rope | None = None
    """The rope of layers with a window, where it is another one."""
    query_scalar: float = 0.0
    """The number whose root divides attention scores; 0: the size of a head."""

    @property
    def family(self) -> Family:
        """The traits of its family."""
        return FAMILIES[self.model_type]

    @property
    def group_size(self) -> int:
        """Query heads that share a KV head."""
        return self.num_heads // self.num_kv_heads

    @property
    def query_scale(self) -> float:
        """Attention scores are multiplied by this."""
        return math.pow(self.query_scalar or self.head_dim, -0.5)

    @property
    def embedding_scale(self) -> float:
        """Embeddings are multiplied by this."""
        return math.sqrt(self.hidden_size) if self.family.scales_embedding else 1.0

    def window_of(self, layer: int) -> int:
        """Tokens that a query of the layer sees, its own included; 0: all."""
        return self.windows[layer] if self.windows else 0

    def rope_of(self, layer: int) -> Rope:
        """The rope of a layer."""
        return self.local_rope if self.local_rope and self.window_of(layer) else self.rope

    def experts_of(self, layer: int) -> Experts | None:
        """The experts of a layer; None where it has a plain MLP."""
        return None if layer in self.dense_layers else self.experts

    def num_idle_parameters(self) -> int:
        """Parameters of the experts that a token is not computed with."""
        layers = [self.experts_of(layer) for layer in range(self.num_layers)]
        return sum((experts.count - experts.per_token) * self._num_in_expert(experts) for experts in layers if experts)

    def _num_in_expert(self, experts: Experts) -> int:
        biases = 2 * experts.inner_size + self.hidden_size if experts.has_bias else 0
        return 3 * self.hidden_size * experts.inner_size + biases

    def num_parameters(self) -> int:
        """All parameters, those of every expert included."""
        return sum(math.prod(shape) for shape in self.tensor_shapes().values())

    def tensor_shapes(self) -> Shapes:
        """The model's tensors by the engine's names, which are those of Hugging Face's Qwen 3; what a family's files
        call them is in ``axon.engine.load.layout``."""
        shapes: Shapes = {"model.embed_tokens.weight": (self.vocab_size, self.hidden_size)}
        for index in range(self.num_layers):
            layer = self._attention_shapes() | self._mlp_shapes(index)
            shapes |= {f"model.layers.{index}.{name}": shape for name, shape in layer.items()}
        shapes["model.norm.weight"] = (self.hidden_size,)
        if not self.tied_embedding:
            shapes["lm_head.weight"] = (self.vocab_size, self.hidden_size)
        return shapes

    def _attention_shapes(self) -> Shapes:
        hidden = self.hidden_size
        sizes = {"q": self.num_heads * self.head_dim, "k": self.num_kv_heads * self.head_dim}
        sizes["v"] = sizes["k"]
        shapes: Shapes = {f"{name}.weight": (hidden,) for name in self.family.norms.names}
        shapes["self_attn.o_proj.weight"] = (hidden, sizes["q"])
        shapes |= {f"self_attn.{name}_proj.weight": (size, hidden) for name, size in sizes.items()}
        if self.qkv_bias:
            shapes |= {f"self_attn.{name}_proj.bias": (size,) for name, size in sizes.items()}
        if self.family.output_bias:
            shapes["self_attn.o_proj.bias"] = (hidden,)
        if self.family.has_sinks:
            shapes["self_attn.sinks"] = (self.num_heads,)
        if self.qk_norm:
            shapes |= {f"self_attn.{name}_norm.weight": (self.head_dim,) for name in "qk"}
        return shapes

    def _mlp_shapes(self, layer: int) -> Shapes:
        experts = self.experts_of(layer)
        if experts is None:
            return self._gated_shapes("mlp", self.intermediate_size)
        shapes: Shapes = {"mlp.gate.weight": (experts.count, self.hidden_size)}
        if experts.has_bias:
            shapes["mlp.gate.bias"] = (experts.count,)
        for expert in range(experts.count):
            shapes |= self._gated_shapes(f"mlp.experts.{expert}", experts.inner_size, has_bias=experts.has_bias)
        return shapes

    def _gated_shapes(self, prefix: str, inner: int, *, has_bias: bool = False) -> Shapes:
        shapes: Shapes = {
            f"{prefix}.gate_proj.weight": (inner, self.hidden_size),
            f"{prefix}.up_proj.weight": (inner, self.hidden_size),
            f"{prefix}.down_proj.weight": (self.hidden_size, inner),
        }
        if has_bias:
            shapes |= {name.replace(".weight", ".bias"): shape[:1] for name, shape in shapes.items()}
        return shapes


_MAX_WINDOW = 1 << 30
"""A sliding window is no longer, in tokens; kernels take it as an int."""


def read_architecture(model_dir: Path) -> Architecture:
    """Reads config.json (and generation_config.json) as Hugging Face folders have them; raises Misconfigured."""
    config = _read_json(model_dir / "config.json")
    if config is None:
        raise Misconfigured(f"{model_dir} is not a model folder: it has no config.json")
    try:
        family = family_of(config)
        _refuse_unsupported(config, family)
        check_sizes(config)
        found = Architecture(
            vocab_size=config["vocab_size"],
            hidden_size=config["hidden_size"],
            intermediate_size=config["intermediate_size"],
            num_layers=config["num_hidden_layers"],
            num_heads=config["num_attention_heads"],
            num_kv_heads=config.get("num_key_value_heads") or config["num_attention_heads"],
            head_dim=config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"],
            rms_norm_eps=read_epsilon(config),
            rope=_read_rope(config, family, family.rope_theta),
            local_rope=_read_local_rope(config, family) if family.local_theta else None,
            windows=_read_windows(config, family) if family.window_pattern else (),
            query_scalar=_read_query_scalar(config, family) if family.query_scalar else 0.0,
            tied_embedding=config.get("tie_word_embeddings", family.tied_embedding),
            max_model_len=min(_read_length(config), _read_window(config, family)),
            eos_ids=_read_eos_ids(config, _read_json(model_dir / "generation_config.json") or {}),
            model_type=config["model_type"],
            qkv_bias=family.qkv_bias,
            qk_norm=family.qk_norm,
            is_fp8=is_fp8(config.get("quantization_config")),
            experts=_read_experts(config, family.experts) if family.experts else None,
            dense_layers=_read_dense_layers(config) if family.experts else frozenset(),
        )
        _check_heads(found)
    except KeyError as error:
        raise Misconfigured(f"{model_dir}/config.json does not say {error}") from error
    except (TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise Misconfigured(f"{model_dir}/config.json cannot be understood: {error}") from error
    return found


def unknown_family(model_dir: Path) -> str:
    """Why no architecture here is the folder's, in one sentence; empty where one is."""
    try:
        family_of(_read_json(model_dir / "config.json") or {})
    except Misconfigured as error:
        return error.message
    return ""


def _read_query_scalar(config: Mapping[str, Any], family: Family) -> float:
    return float(positive("query_pre_attn_scalar", config.get("query_pre_attn_scalar", family.query_scalar)))


def _check_heads(architecture: Architecture) -> None:
    """Raises ``ValueError`` for heads that cannot be grouped, or of which an odd number of dimensions is rotated."""
    heads, kv_heads, head_dim = architecture.num_heads, architecture.num_kv_heads, architecture.head_dim
    if heads % kv_heads:
        raise ValueError(f"{heads} heads (num_attention_heads) are no multiple of {kv_heads} (num_key_value_heads)")
    for rope in filter(None, (architecture.rope, architecture.local_rope)):
        rotated = rope.rotary_dim(head_dim)
        if not 0 < rotated <= head_dim or rotated % 2:
            raise ValueError(f"{rotated} dimensions of a head are rotated, in place of an even number up to {head_dim}")


_REFUSED = {
    "attention_bias": "biases",
    "mlp_bias": "biases",
    "attn_logit_softcapping": "soft caps",
    "final_logit_softcapping": "soft caps",
    "use_bidirectional_attention": "tokens that see later ones",
}
"""Keys of a config.json whose values must be false or missing, and what they stand for."""


def _refuse_unsupported(config: Mapping[str, Any], family: Family) -> None:
    for key, what in _REFUSED.items():
        if config.get(key) and not (key == "attention_bias" and family.output_bias):
            raise UnknownModel(
                f"{config['model_type']} models with {what} ({key}) are not supported yet; those without them work"
            )
    if family.output_bias and not config.get("attention_bias", True):
        raise UnknownModel(
            f"{config['model_type']} models without biases (attention_bias) are not supported yet; those with them work"
        )
    if quantisation := config.get("quantization_config"):
        check_quantisation(quantisation, has_mxfp4=family.stacks_experts)
    activation = config.get("hidden_activation") or config.get("hidden_act") or family.activation
    if activation != family.activation:
        raise UnknownModel(
            f"an activation of type {activation!r} is not supported yet; {config['model_type']} works with "
            f"{family.activation!r}"
        )


def _read_window(config: Mapping[str, Any], family: Family) -> int:
    """The length of the sliding window: within it, full attention is the same."""
    is_used = config.get("use_sliding_window", family.windowed)
    window = config.get("sliding_window") if is_used else None
    return _checked_window(window) if window else config["max_position_embeddings"]


def _checked_window(window: object) -> int:
    if type(window) is not int or not 0 < window <= _MAX_WINDOW:
        raise ValueError(f"sliding_window is no whole number from 1 to {_MAX_WINDOW:,}")
    return window


def _read_rope(config: Mapping[str, Any], family: Family, default_theta: float) -> Rope:
    """The rope of layers that see all."""
    scaling = _scaling(config)
    if (kind := rope_kind(scaling)) not in family.ropes:
        raise UnknownModel(
            f"{config['model_type']} models with rope scaling of type {kind!r} are not supported yet; the nearest that "
            f"work have {', '.join(family.ropes)}"
        )
    rope = read_rope(config, scaling, config.get("rope_theta", default_theta))
    if rope.partial != 1.0 and not family.rotates_part:
        raise UnknownModel(
            f"{config['model_type']} models that rotate only a part of each head are not supported yet; those that "
            "rotate all of it work"
        )
    return rope


def _scaling(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the config says of the rope of layers that see all."""
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    found: Mapping[str, Any] = scaling.get("full_attention", scaling)
    return found


def _read_length(config: Mapping[str, Any]) -> int:
    """The longest context. LongRoPE has other factors beyond the length that it was first trained with, which would
    rotate the keys that are kept anew: a context ends there."""
    length: int = config["max_position_embeddings"]
    scaling = _scaling(config)
    return min(length, trained_len(config, scaling)) if rope_kind(scaling) == "longrope" else length


def _read_local_rope(config: Mapping[str, Any], family: Family) -> Rope:
    """The rope of layers with a sliding window, which is never scaled."""
    given = (config.get("rope_parameters") or {}).get("sliding_attention") or {}
    if (kind := rope_kind(given)) != "default":
        raise Misconfigured(f"a sliding window with rope scaling of type {kind!r} is not supported yet")
    theta = given.get("rope_theta") or config.get("rope_local_base_freq", family.local_theta)
    return Rope(theta=positive("rope_theta", theta))


def _read_windows(config: Mapping[str, Any], family: Family) -> tuple[int, ...]:
    """The window of each layer: of those that ``layer_types`` names, or of all but those of the family's pattern."""
    pattern = config.get("sliding_window_pattern") or family.window_pattern
    layers = range(config["num_hidden_layers"])
    kinds = config.get("layer_types") or ["full_attention" if (i + 1) % pattern == 0 else "" for i in layers]
    if len(kinds) != len(layers):
        raise ValueError(f"layer_types has {len(kinds)} entries for {len(layers)} layers")
    window = _checked_window(config["sliding_window"])
    return tuple(0 if kind == "full_attention" else window for kind in kinds)


def _read_experts(config: Mapping[str, Any], keys: ExpertKeys) -> Experts:
    count = next((config[key] for key in keys.count if key in config), None)
    if count is None:
        raise KeyError(keys.count[0])
    per_token = config["num_experts_per_tok"]
    if per_token > count:
        raise ValueError(f"num_experts_per_tok is {per_token}, and there are {count} experts")
    normalises = config.get("norm_topk_prob", False) if keys.normalises is None else keys.normalises
    plain = Experts(count=count, per_token=per_token, inner_size=config[keys.inner], normalises=bool(normalises))
    if not keys.clamped:
        return plain
    limit, slope = float(config.get("swiglu_limit", 7.0)), float(config.get("swiglu_alpha", 1.702))
    if not (0 < limit < math.inf and 0 < slope < math.inf):
        raise ValueError("swiglu_limit and swiglu_alpha are no numbers above 0")
    return replace(plain, has_bias=True, limit=limit, slope=slope)


def _read_dense_layers(config: Mapping[str, Any]) -> frozenset[int]:
    """The layers without experts: those that are named, and all but every ``decoder_sparse_step``-th."""
    step, named = config.get("decoder_sparse_step", 1), set(config.get("mlp_only_layers") or ())
    layers = range(config["num_hidden_layers"])
    return frozenset(layer for layer in layers if layer in named or (layer + 1) % step)


def _read_eos_ids(config: Mapping[str, Any], generation: Mapping[str, Any]) -> frozenset[int]:
    eos = generation.get("eos_token_id", config.get("eos_token_id"))
    ids = [] if eos is None else eos if isinstance(eos, list) else [eos]
    if not all(type(each) is int for each in ids):
        raise ValueError("eos_token_id is neither a number nor a list of numbers")
    return frozenset(ids)


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
