"""Shapes of small models for checks on a GPU."""

from typing import Any

WIDE: dict[str, dict[str, Any]] = {
    "llama": {
        "hidden_size": 512,
        "intermediate_size": 1024,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "vocab_size": 1024,
        "tie_word_embeddings": False,
    },
    "qwen3": {
        "model_type": "qwen3",
        "rms_norm_eps": 1e-6,
        "rope_theta": 1000000.0,
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 2048,
    },
}
"""Shapes that go through the quick kernels too."""
