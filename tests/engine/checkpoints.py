"""Tiny random checkpoints of the families that ``builders`` cannot write: transformers makes and saves them."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

_SIZES: dict[str, Any] = {
    "vocab_size": 272,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
    "bos_token_id": 1,
    "eos_token_id": 257,
    "pad_token_id": 0,
}
NEWER: dict[str, dict[str, Any]] = {
    "mixtral": {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen3_moe": {
        "model_type": "qwen3_moe",
        "num_experts": 20,
        "num_experts_per_tok": 3,
        "moe_intermediate_size": 40,
        "norm_topk_prob": True,
    },
    "qwen3_moe, some layers dense": {
        "model_type": "qwen3_moe",
        "num_experts": 5,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 24,
        "norm_topk_prob": False,
        "mlp_only_layers": [1],
    },
    "gemma3": {
        "model_type": "gemma3_text",
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "hidden_size": 64,
        "sliding_window": 24,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
        "query_pre_attn_scalar": 24,
        "rope_parameters": {
            "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1000000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        },
    },
    "phi3": {"model_type": "phi3", "partial_rotary_factor": 0.75},
    "phi3, longrope": {
        "model_type": "phi3",
        "tie_word_embeddings": True,
        "head_dim": 8,
        "original_max_position_embeddings": 256,
        "rope_parameters": {
            "rope_type": "longrope",
            "rope_theta": 10000.0,
            "partial_rotary_factor": 0.75,
            "short_factor": [1.0, 1.3, 2.0],
            "long_factor": [1.0, 4.0, 8.0],
        },
    },
    "gpt_oss": {
        "model_type": "gpt_oss",
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "hidden_size": 64,
        "intermediate_size": 32,
        "num_local_experts": 6,
        "num_experts_per_tok": 3,
        "sliding_window": 24,
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 150000.0,
            "factor": 8.0,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "truncate": False,
            "original_max_position_embeddings": 64,
        },
    },
}
"""Configs by name, beside the sizes that all have."""


@torch.inference_mode()
def make_checkpoint(folder: Path, name: str, **changes: Any) -> Path:
    """Writes a random model as transformers does; equal arguments give equal weights."""
    config = AutoConfig.for_model(**_SIZES | NEWER[name] | changes)
    model = AutoModelForCausalLM.from_config(config)
    generator = torch.Generator().manual_seed(7)
    for parameter in model.parameters():
        parameter.normal_(0, 0.3, generator=generator)
    model.save_pretrained(folder)
    return folder
