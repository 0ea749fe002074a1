"""The families of models that the engine computes: a table of traits by ``model_type``. Knows no sizes, no tensors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from types import MappingProxyType

from axon.errors import Misconfigured


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
    local_theta: float = 0.0
    """The base of the rotary frequencies in layers with a sliding window, which lie among layers without one; 0: the
    window, if any, is that of all layers, and the context ends with it."""
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
}
"""The engine computes these, by their ``model_type`` in config.json."""


@dataclass(frozen=True, slots=True)
class _Missing:
    """A family that the engine does not compute: what it lacks for it, and which family is nearest."""

    lacks: str
    nearest: str


_KNOWN_MISSING = {
    "gpt_oss": _Missing("attention sinks and experts in MXFP4", "qwen3_moe"),
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
    "mamba": _Missing("state space layers", "llama"),
}
"""Families that people often try, and what the engine lacks for them."""


def family_of(model_type: object) -> Family:
    """The traits of a ``model_type``; raises ``Misconfigured`` with what is missing and the nearest that works."""
    if isinstance(model_type, str) and model_type in FAMILIES:
        return FAMILIES[model_type]
    raise Misconfigured(unknown_sentence(model_type))


def unknown_sentence(model_type: object) -> str:
    """One sentence for a family that is not in the table: what is missing, and the nearest architecture that works."""
    known = _KNOWN_MISSING.get(str(model_type)) or _Missing("its layers", nearest_family(str(model_type)))
    return (
        f"models of type {model_type!r} are not supported yet: the engine lacks {known.lacks}; the nearest "
        f"architecture that works is {known.nearest}, and these do: {', '.join(FAMILIES)}"
    )


def nearest_family(model_type: str) -> str:
    """The family whose name begins alike and has the least of its own; ``llama`` where none has three letters alike."""

    def num_alike(name: str) -> int:
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(name, model_type, strict=False)))

    best = max(FAMILIES, key=lambda name: 2 * num_alike(name) - len(name))
    return best if num_alike(best) >= 3 else "llama"
