"""The config.json of a GGUF file's model, from its metadata. Reads no tensor but the rope factors."""

from typing import Any

from axon.engine.load.convert.source import Source
from axon.engine.load.family import nearest_family
from axon.errors import Misconfigured, UnknownModel

ARCHITECTURES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}
ROPE_FACTORS = "rope_freqs.weight"
"""The tensor in which Llama 3 files give the divisor of each rotary frequency."""
_ENDS = frozenset(("<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end_of_text|>", "<|endoftext|>", "</s>"))
"""Control tokens that always end an answer: a file names one end token, and many models have several."""
_CONTROL = 3
_AS_FOLDERS = {"gemma3": "gemma3_text", "gpt-oss": "gpt_oss", "phi3": "phi3", "qwen3moe": "qwen3_moe"}
"""Architectures that are not read from GGUF files, and the type of the folders of safetensors that are."""


def refuse_unsupported(source: Source, name: str) -> None:
    """Raises Misconfigured for a model that would run with wrong results."""
    if source.architecture in _AS_FOLDERS:
        raise Misconfigured(
            f"{name} is a {source.architecture!r} model, which is not read from GGUF files yet: give it as a folder of "
            f"safetensors ({_AS_FOLDERS[source.architecture]})"
        )
    if source.architecture not in ARCHITECTURES:
        raise UnknownModel(
            f"{name} is a {source.architecture!r} model; {', '.join(ARCHITECTURES)} are read from GGUF files, and "
            f"{nearest_family(source.architecture)} is the nearest architecture that works"
        )
    if source.shape("expert_count", 0):
        raise Misconfigured(
            f"{name} is a mixture of experts, which is not read from GGUF files yet: give it as a folder of safetensors"
        )
    head_dim = _head_dim(source)
    if source.shape("attention.value_length", head_dim) != head_dim:
        raise Misconfigured(f"{name} has keys and values of different sizes, which is not supported yet")
    if source.shape("rope.dimension_count", head_dim) != head_dim:
        raise Misconfigured(f"{name} rotates only a part of each head, which is not supported yet")


def make_config(source: Source) -> dict[str, Any]:
    """The config.json as Hugging Face writes it."""
    tensors = {tensor.name: tensor for tensor in source.tensors}
    if "token_embd.weight" not in tensors:
        raise Misconfigured("the GGUF file has no tensor 'token_embd.weight'")
    num_heads = source.shape("attention.head_count")
    config = {
        "architectures": [ARCHITECTURES[source.architecture]],
        "model_type": source.architecture,
        "vocab_size": int(tensors["token_embd.weight"].shape[1]),
        "hidden_size": source.shape("embedding_length"),
        "intermediate_size": source.shape("feed_forward_length"),
        "num_hidden_layers": source.shape("block_count"),
        "num_attention_heads": num_heads,
        "num_key_value_heads": source.shape("attention.head_count_kv", num_heads),
        "head_dim": _head_dim(source),
        "rms_norm_eps": source.shape("attention.layer_norm_rms_epsilon"),
        "rope_theta": source.shape("rope.freq_base", 10000.0),
        "rope_scaling": _rope_scaling(source, tensors.get(ROPE_FACTORS)),
        "max_position_embeddings": source.shape("context_length"),
        "sliding_window": source.shape("attention.sliding_window", None),
        "use_sliding_window": bool(source.shape("attention.sliding_window", 0)),
        "tie_word_embeddings": "output.weight" not in tensors,
        "bos_token_id": source.metadata.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": _eos_ids(source),
    }
    return {key: value for key, value in config.items() if value is not None}


def _head_dim(source: Source) -> int:
    plain = source.shape("embedding_length") // source.shape("attention.head_count")
    return int(source.shape("attention.key_length", source.shape("rope.dimension_count", plain)))


def _rope_scaling(source: Source, factors: Any) -> dict[str, Any] | None:
    if factors is not None:
        return {"rope_type": "factors", "factors": factors.data.tolist()}
    kind = source.shape("rope.scaling.type", "none")
    if kind == "linear":
        return {"rope_type": "linear", "factor": source.shape("rope.scaling.factor")}
    if kind != "none":
        raise UnknownModel(f"rope scaling of type {kind!r} is not supported yet; in GGUF files none and linear work")
    return None


def _eos_ids(source: Source) -> list[int]:
    named = [source.metadata.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot", "eom")]
    tokens = source.metadata.get("tokenizer.ggml.tokens", [])
    kinds = source.metadata.get("tokenizer.ggml.token_type", [])
    known = [id for id, (token, kind) in enumerate(zip(tokens, kinds, strict=False)) if kind == _CONTROL]
    ends = {id for id in named if id is not None} | {id for id in known if tokens[id] in _ENDS}
    return sorted(ends)
