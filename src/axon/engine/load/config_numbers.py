"""Checks the numbers of a config.json before anything is computed with them. Knows no architecture."""

import math
from collections.abc import Mapping
from typing import Any

_MOST = {
    "vocab_size": 1 << 30,
    "hidden_size": 1 << 24,
    "intermediate_size": 1 << 24,
    "moe_intermediate_size": 1 << 24,
    "num_hidden_layers": 10_000,
    "num_attention_heads": 1 << 16,
    "num_key_value_heads": 1 << 16,
    "num_experts": 1 << 12,
    "num_local_experts": 1 << 12,
    "num_experts_per_tok": 1 << 8,
    "head_dim": 1 << 16,
    "max_position_embeddings": 1 << 40,
}
"""Sizes in a config.json, and what none of them exceeds."""
_DERIVED = ("num_key_value_heads", "head_dim")
"""Sizes that follow from the others where they are null or 0."""


def check_sizes(config: Mapping[str, Any]) -> None:
    """Raises ``ValueError`` for a size that no model has; one that is missing is found later."""
    for name, most in _MOST.items():
        size = config.get(name)
        if name not in config or (not size and name in _DERIVED):
            continue
        if type(size) is not int or not 0 < size <= most:
            raise ValueError(f"{name} is no whole number from 1 to {most:,}")


def read_epsilon(config: Mapping[str, Any]) -> float:
    """Reads ``rms_norm_eps``, which is added to the mean square so that a norm never divides by zero; raises
    ``ValueError``."""
    epsilon = config.get("rms_norm_eps", 1e-6)
    if not isinstance(epsilon, int | float) or not 0 <= epsilon < math.inf:
        raise ValueError("rms_norm_eps is no number from 0 on")
    return float(epsilon)
