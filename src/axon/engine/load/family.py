"""The families of models that the engine computes: a table of traits by ``model_type``. Knows no sizes, no tensors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from types import MappingProxyType
from typing import Any, TypeGuard

from axon.errors import Misconfigured, UnknownModel


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerNorms:
    """The norms of a layer by their names in the files; the defaults are Llama's."""

    input: str = "input_layernorm"
    """The norm before attention."""
    mlp: str = "post_attention_layernorm"
    """The norm before the MLP."""
    attention_post: str = ""
    """The norm of attention's output, before it is added to the hidden rows; empty: none."""
    mlp_post: str = ""
    """The norm of the MLP's output, likewise."""

    @property
    def names(self) -> tuple[str, ...]:
        """Those that the family has."""
        return tuple(filter(None, (self.input, self.mlp, self.attention_post, self.mlp_post)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What all models of one ``model_type`` have in common; the defaults are Llama's."""

    title: str
    """What people call it."""
    qkv_bias: bool = False
    """Queries, keys and values have a bias."""
    output_bias: bool = False
    """Attention's output has a bias."""
    has_sinks: bool = False
    """Each head has a sink: a score that takes part in every softmax, and that no value belongs to."""
    qk_norm: bool = False
    """Each head's queries and keys are normalised before they are rotated."""
    tied_embedding: bool = False
    """Whether the output head is the embedding where config.json does not say it."""
    rope_theta: float = 10000.0
    """The base of the rotary frequencies where config.json does not say it."""
    ropes: tuple[str, ...] = ("default", "linear", "llama3", "factors")
    """The kinds of rope scaling that its models come with."""
    windowed: bool = False
    """Whether ``sliding_window`` counts without ``use_sliding_window``."""
    window_pattern: int = 0
    """Where config.json does not name the layers that attend to all tokens, every layer whose number is a multiple of
    this does, and the others have a sliding window. 0: the window, if any, is that of all layers, and the context ends
    with it."""
    local_theta: float = 0.0
    """The base of the rotary frequencies in layers with a sliding window; 0: that of the other layers."""
    norms: LayerNorms = LayerNorms()
    norm_offset: float = 0.0
    """What is added to the weights of all norms: Gemma's are stored as the distance from 1."""
    activation: str = "silu"
    """The activation of an MLP's gate, as config.json names it."""
    scales_embedding: bool = False
    """Whether embeddings are multiplied by the root of the hidden size."""
    query_scalar: float = 0.0
    """The number whose root divides attention scores where config.json does not say it; 0: the size of a head."""
    experts: "ExpertKeys | None" = None
    """A mixture of experts: the keys of config.json that describe it."""
    file_names: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Parts of the engine's tensor names, and what its files have instead."""
    fused: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Matrices of its files that hold several of the engine's, one below the other."""
    stacks_experts: bool = False
    """Whether its files have one tensor for a matrix of all experts of a layer, ``experts.gate_up_proj`` [expert,
    input, 2 x output] with gate and up by turns and ``experts.down_proj`` [expert, input, output], or both in MXFP4."""
    rotates_part: bool = False
    """Whether positions may rotate the first dimensions of a head alone (``partial_rotary_factor``)."""
    is_plain: bool = False
    """Whether its layers are Llama's but for biases and norms of heads: such models run in fp8 on a GPU too, and give
    vectors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertKeys:
    """Where a family's config.json describes its experts."""

    count: tuple[str, ...]
    """The key of the number of experts; several are several spellings."""
    inner: str
    """The key of the experts' inner size."""
    normalises: bool | None = None
    """Whether the weights of a token's experts are scaled to a sum of 1; None: ``norm_topk_prob`` says it."""
    clamped: bool = False
    """gpt-oss: experts and router have biases, and the experts' SwiGLU is clamped (``swiglu_limit``)."""


FAMILIES: Mapping[str, Family] = {
    "llama": Family(title="Llama 2 and 3, SmolLM2", is_plain=True),
    "mistral": Family(title="Mistral", windowed=True, is_plain=True),
    "qwen2": Family(title="Qwen 2.5", qkv_bias=True, is_plain=True),
    "qwen3": Family(title="Qwen 3", qk_norm=True, is_plain=True),
    "mixtral": Family(
        title="Mixtral",
        windowed=True,
        rope_theta=1000000.0,
        experts=ExpertKeys(count=("num_local_experts",), inner="intermediate_size", normalises=True),
        file_names={
            "mlp.experts": "block_sparse_moe.experts",
            "mlp.gate.": "block_sparse_moe.gate.",
            "gate_proj": "w1",
            "up_proj": "w3",
            "down_proj": "w2",
        },
    ),
    "qwen3_moe": Family(
        title="Qwen 3 MoE",
        qk_norm=True,
        experts=ExpertKeys(count=("num_experts", "num_local_experts"), inner="moe_intermediate_size"),
    ),
    "gemma3_text": Family(
        title="Gemma 3 (text)",
        qk_norm=True,
        tied_embedding=True,
        rope_theta=1000000.0,
        window_pattern=6,
        local_theta=10000.0,
        ropes=("default", "linear"),
        norms=LayerNorms(
            mlp="pre_feedforward_layernorm",
            attention_post="post_attention_layernorm",
            mlp_post="post_feedforward_layernorm",
        ),
        norm_offset=1.0,
        activation="gelu_pytorch_tanh",
        scales_embedding=True,
        query_scalar=256.0,
    ),
    "phi3": Family(
        title="Phi 3, Phi 4",
        windowed=True,
        ropes=("default", "longrope"),
        rotates_part=True,
        fused={"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")},
    ),
    "gpt_oss": Family(
        title="gpt-oss",
        qkv_bias=True,
        output_bias=True,
        has_sinks=True,
        rope_theta=150000.0,
        ropes=("default", "yarn"),
        window_pattern=2,
        experts=ExpertKeys(
            count=("num_local_experts", "num_experts"), inner="intermediate_size", normalises=True, clamped=True
        ),
        file_names={"mlp.gate.": "mlp.router."},
        stacks_experts=True,
    ),
}
"""The engine computes these, by their ``model_type`` in config.json."""


@dataclass(frozen=True, slots=True)
class _Missing:
    """A family that the engine does not compute: what it lacks for it, and which family is nearest."""

    lacks: str
    nearest: str


_MAX_SHOWN = 60
_ENCODER = _Missing("this encoder's layers", "bert, which like roberta and xlm-roberta gives vectors")
_SIDE_BY_SIDE = _Missing("LayerNorm, and layers whose attention and MLP run side by side", "llama")
_ALIBI = _Missing("positions that are added to attention scores (ALiBi), and LayerNorm", "llama")
_RECURRENT = _Missing("state space layers", "llama")
_RECURRENT_TOO = _Missing("state space layers beside those with attention", "llama")
_NO_TEXT = _Missing(
    "all but text: it reads pictures or sounds and writes no text", "bert, which gives vectors of texts"
)
_KNOWN_MISSING = {
    "deepseek": _Missing("experts that all tokens share", "qwen3_moe"),
    "kimi_k2": _Missing("multi-head latent attention and shared experts", "qwen3_moe"),
    "glm": _Missing("heads that are rotated in neighbouring pairs", "phi3"),
    "glm4": _Missing("heads that are rotated in neighbouring pairs, and norms behind attention and MLP", "phi3"),
    "glm4_moe": _Missing("experts that all tokens share, and their routing", "qwen3_moe"),
    "ernie4_5": _Missing("heads that are rotated in neighbouring pairs", "llama"),
    "granite": _Missing("the factors of its embeddings, scores, blocks and logits", "llama"),
    "olmo": _Missing("LayerNorm without weights", "llama"),
    "olmoe": _Missing("norms of all heads of queries and keys at once", "qwen3_moe"),
    "smollm3": _Missing("layers that rotate no positions", "llama"),
    "stablelm": _Missing("LayerNorm", "llama"),
    "starcoder2": _Missing("LayerNorm, biases and an MLP without a gate", "mistral"),
    "nemotron": _Missing("LayerNorm and an MLP without a gate", "llama"),
    "opt": _Missing("learned positions, LayerNorm and biases", "llama"),
    **dict.fromkeys(("falcon", "gpt_neox", "gptneox", "gptj", "cohere", "cohere2"), _SIDE_BY_SIDE),
    **dict.fromkeys(("bloom", "mpt"), _ALIBI),
    **dict.fromkeys(("mamba", "mamba2", "falcon_mamba"), _RECURRENT),
    **dict.fromkeys(("jamba", "bamba", "zamba2", "falcon_h1", "nemotron_h", "granitemoehybrid"), _RECURRENT_TOO),
    **dict.fromkeys(("clip", "siglip", "siglip2", "vit", "dinov2", "wav2vec2", "hubert", "sam"), _NO_TEXT),
    "qwen2_moe": _Missing("an expert that all tokens share", "qwen3_moe"),
    "deepseek_v2": _Missing("multi-head latent attention and shared experts", "qwen3_moe"),
    "deepseek_v3": _Missing("multi-head latent attention and shared experts", "qwen3_moe"),
    "gemma": _Missing("layers without norms of queries and keys", "gemma3_text"),
    "gemma2": _Missing("the soft caps of attention scores and logits", "gemma3_text"),
    "gemma3": _Missing("the pictures that it reads", "gemma3_text"),
    "llama4": _Missing("its chunked attention and shared experts", "llama"),
    "qwen3_next": _Missing("linear attention", "qwen3_moe"),
    "mistral3": _Missing("the pictures that it reads", "mistral"),
    "phi": _Missing("layers whose attention and MLP run side by side, with biases", "phi3"),
    "phi3small": _Missing("block-sparse attention", "phi3"),
    "phi3_v": _Missing("the pictures that it reads", "phi3"),
    "phi4mm": _Missing("the pictures and sounds that it reads", "phi3"),
    "phimoe": _Missing("LayerNorm with biases and its routing", "mixtral"),
    "olmo2": _Missing("norms behind its blocks alone", "qwen3"),
    "gpt2": _Missing("learned positions, LayerNorm and biases", "llama"),
    **dict.fromkeys(("albert", "deberta", "deberta-v2", "distilbert", "electra", "mpnet", "modernbert"), _ENCODER),
    **dict.fromkeys(("bart", "t5", "mt5", "whisper"), _Missing("a decoder that attends to an encoder", "llama")),
}
"""Families that people often try, and what the engine lacks for them."""
_SHOWN = {
    ("vision_config", "vision_tower", "mm_vision_tower", "visual"): "the pictures that it reads",
    ("audio_config", "audio_tower"): "the sounds that it reads",
    ("is_encoder_decoder",): "a decoder that attends to an encoder",
    ("ssm_cfg", "ssm_state_size", "mamba_d_state", "mamba_d_conv", "state_size"): "state space layers",
    ("linear_num_value_heads", "linear_conv_kernel_dim"): "linear attention",
    ("kv_lora_rank",): "multi-head latent attention",
    ("n_shared_experts", "num_shared_experts", "shared_expert_intermediate_size"): "experts that all tokens share",
    ("attn_logit_softcapping", "final_logit_softcapping"): "soft caps of attention scores and logits",
    ("parallel_attn", "use_parallel_residual"): "layers whose attention and MLP run side by side",
    ("alibi",): "positions that are added to attention scores (ALiBi)",
    ("layer_norm_eps", "layer_norm_epsilon"): "LayerNorm",
}
"""Keys of a config.json that show what a family has which is not in a table, and the engine has not."""


def family_of(config: Mapping[str, Any]) -> Family:
    """The traits of the ``model_type`` of a config.json; raises ``UnknownModel``, for what is no language model
    ``Misconfigured``, with what is missing and the nearest that works."""
    model_type = config.get("model_type")
    if isinstance(model_type, str) and model_type in FAMILIES:
        return FAMILIES[model_type]
    is_part = model_type is None and "_class_name" in config
    is_other = _is_named(model_type) and _missing(model_type, config) in (_ENCODER, _NO_TEXT)
    raise (Misconfigured if is_part or is_other else UnknownModel)(unknown_sentence(config))


def unknown_sentence(config: Mapping[str, Any]) -> str:
    """One sentence for a family that is not in the table: what is missing, and the nearest architecture that works."""
    model_type = config.get("model_type")
    if not _is_named(model_type):
        part = config.get("_class_name")
        is_what = (
            "it is a part of a diffusion pipeline, which makes no text"
            if part
            else ("its config.json does not say what it is (model_type)")
        )
        return f"{is_what}; these architectures work: {', '.join(FAMILIES)}"
    missing = _missing(model_type, config)
    shown = model_type if len(model_type) <= _MAX_SHOWN else f"{model_type[:_MAX_SHOWN]}…"
    return (
        f"models of type {shown!r} are not supported yet: the engine lacks {missing.lacks}; the nearest "
        f"architecture that works is {missing.nearest}, and these do: {', '.join(FAMILIES)}"
    )


def _is_named(model_type: object) -> TypeGuard[str]:
    return isinstance(model_type, str) and bool(model_type)


def _missing(model_type: str, config: Mapping[str, Any]) -> _Missing:
    """Returns the table's entry for a family, else one by the first key of its config.json that shows what it has."""
    if known := _KNOWN_MISSING.get(model_type):
        return known
    if "bert" in model_type:
        return _ENCODER
    text = config.get("text_config")
    inner = text.get("model_type") if isinstance(text, Mapping) else None
    nearest = nearest_family(inner if _is_named(inner) else model_type)
    lacks = next((what for keys, what in _SHOWN.items() if any(config.get(key) for key in keys)), "its layers")
    has_experts = any(config.get(key) for key in ("num_experts", "num_local_experts", "n_routed_experts"))
    if has_experts and nearest in FAMILIES and FAMILIES[nearest].experts is None:
        nearest = "qwen3_moe"
    return _Missing(lacks, nearest)


def nearest_family(model_type: str) -> str:
    """The family whose name begins alike and has the least of its own; ``llama`` where none has three letters alike."""
    if model_type in _KNOWN_MISSING:
        return _KNOWN_MISSING[model_type].nearest

    def num_alike(name: str) -> int:
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(name, model_type, strict=False)))

    best = max(FAMILIES, key=lambda name: 2 * num_alike(name) - len(name))
    return best if num_alike(best) >= 3 else "llama"
