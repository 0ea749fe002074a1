"""Small models and the folders of draft heads for them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from tests.engine.builders import TINY_CONFIG, make_tiny_llama

LAYERS = 7
HEAD_CONFIG: dict[str, Any] = TINY_CONFIG | {
    "architectures": ["LlamaForCausalLMEagle3"],
    "num_hidden_layers": 1,
    "intermediate_size": 56,
    "draft_vocab_size": 100,
}


def make_target(folder: Path, **changes: Any) -> Path:
    """A model with as many layers as a head needs."""
    return make_tiny_llama(folder, num_hidden_layers=LAYERS, **changes)


def favour(folder: Path, ids: Sequence[int], factor: float = 4.0) -> Path:
    """Makes a model say these tokens more often than others: a head that knows no others is then right at times."""
    path = folder / "model.safetensors"
    tensors = load_file(path)
    name = "lm_head.weight" if "lm_head.weight" in tensors else "model.embed_tokens.weight"
    tensors[name][list(ids)] *= factor
    save_file(tensors, path)
    return folder


def make_head(
    folder: Path,
    *,
    seed: int = 5,
    own: bool = False,
    layer: str = "midlayer",
    less: str = "",
    ids: Sequence[int] = (),
    **changes: Any,
) -> Path:
    """Writes a random head; ``own``: with an embedding and an output of its own. ``less``: a tensor that is missing.
    ``ids``: the tokens that it drafts, by default random ones."""
    config = HEAD_CONFIG | ({"draft_vocab_size": len(ids)} if ids else {}) | changes
    random = np.random.default_rng(seed)
    hidden, inner, dim = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    heads, kv_heads = config["num_attention_heads"] * dim, config["num_key_value_heads"] * dim
    num_ids = config["draft_vocab_size"]
    shapes = {
        "fc.weight": (hidden, 3 * hidden),
        f"{layer}.self_attn.q_proj.weight": (heads, 2 * hidden),
        f"{layer}.self_attn.k_proj.weight": (kv_heads, 2 * hidden),
        f"{layer}.self_attn.v_proj.weight": (kv_heads, 2 * hidden),
        f"{layer}.self_attn.o_proj.weight": (hidden, heads),
        f"{layer}.mlp.gate_proj.weight": (inner, hidden),
        f"{layer}.mlp.up_proj.weight": (inner, hidden),
        f"{layer}.mlp.down_proj.weight": (hidden, inner),
        f"{layer}.input_layernorm.weight": (hidden,),
        f"{layer}.hidden_norm.weight": (hidden,),
        f"{layer}.post_attention_layernorm.weight": (hidden,),
        "norm.weight": (hidden,),
    }
    if own:
        shapes |= {"embed_tokens.weight": (config["vocab_size"], hidden), "lm_head.weight": (num_ids, hidden)}
    tensors = {name: random.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
    known = np.sort(ids if ids else random.choice(config["vocab_size"], num_ids, replace=False))
    tensors["d2t"] = (known - np.arange(num_ids)).astype(np.int64)
    tensors.pop(less, None)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    return folder
