"""A draft head as EAGLE-3 heads are published: config.json and safetensors. Knows no torch and no kernels.

The head is one decoder layer over what its target has computed of a position (the inputs of three of the target's
layers, its features) and the token behind it. What it has no tensors for, its embedding or its output, it takes from
the target.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from axon.engine.load.architecture import Architecture, read_architecture
from axon.engine.load.arrays import Floats, read_array
from axon.engine.load.head_folder import names_in, read_config
from axon.engine.load.tensor_files import TensorInfo, check_shapes, find_tensors
from axon.errors import Misconfigured

Ids = npt.NDArray[np.int64]

NUM_FEATURES = 3
"""Layers of the target whose inputs a head takes."""
_LAYERS = ("midlayer", "layers.0")
"""Names of the head's one layer in files."""
_EMBEDDING, _OUTPUT, _IDS = "embed_tokens.weight", "lm_head.weight", "d2t"


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftHead:
    """A head that fits its target."""

    folder: Path
    architecture: Architecture
    """The architecture of its one layer, with the vocabulary of the target."""
    layers: tuple[int, int, int]
    """The layers of the target whose inputs are its features."""
    ids: Ids
    """The target's token of each of the head's outputs."""
    tensors: dict[str, TensorInfo]
    layer: str
    """The name of its layer in its files."""

    @property
    def has_embedding(self) -> bool:
        """Whether it embeds tokens by itself."""
        return _EMBEDDING in self.tensors

    @property
    def has_output(self) -> bool:
        """Whether its output is its own, and not those rows of the target's that it has ids for."""
        return _OUTPUT in self.tensors

    def take(self, name: str) -> Floats:
        """A tensor in float32; names inside the layer begin with ``layer.``."""
        name = name.replace("layer.", f"{self.layer}.", 1) if name.startswith("layer.") else name
        return read_array(name, self.tensors[name])


def read_head(folder: Path, target: Architecture) -> DraftHead:
    """Reads a head for a target, all but its weights; raises ``Misconfigured`` for one that does not fit it."""
    config = read_config(folder)
    tensors = find_tensors(folder)
    layer = next((name for name in _LAYERS if f"{name}.hidden_norm.weight" in tensors), None)
    if layer is None or "eagle3" not in "".join(names_in(config)).lower().replace("-", "").replace("_", ""):
        raise Misconfigured(
            f"{folder} is a head of EAGLE-1 or EAGLE-2, or of another kind: only EAGLE-3 heads draft here"
        )
    if config.get("norm_before_residual") or config.get("norm_before_fc"):
        raise Misconfigured(f"{folder} normalises what it adds to, which EAGLE-3 heads do not do here yet")
    architecture = read_architecture(folder)
    _compare(folder, architecture, target)
    ids = _read_ids(folder, config, tensors, target.vocab_size)
    layers = _read_layers(folder, config, target.num_layers)
    check_shapes(folder, _shapes(architecture, layer, tensors, len(ids)))
    return DraftHead(folder=folder, architecture=architecture, layers=layers, ids=ids, tensors=tensors, layer=layer)


def feature_layers(num_layers: int) -> tuple[int, int, int]:
    """The layers whose inputs are features, where a head does not name them."""
    return 2, num_layers // 2, num_layers - 3


def _compare(folder: Path, head: Architecture, target: Architecture) -> None:
    if head.num_layers != 1:
        raise Misconfigured(f"{folder} has {head.num_layers} layers, and a head that drafts here has one")
    if head.hidden_size != target.hidden_size:
        raise Misconfigured(
            f"{folder} is a head for models of hidden size {head.hidden_size}, and this model has {target.hidden_size}"
        )
    if head.vocab_size != target.vocab_size:
        raise Misconfigured(
            f"{folder} is a head for models of {head.vocab_size} tokens, and this model has {target.vocab_size}"
        )
    if not target.family.is_plain:
        raise Misconfigured(
            f"{folder} cannot draft for a model of type {target.model_type}: heads draft for Llamas here"
        )


def _read_layers(folder: Path, config: dict[str, Any], num_layers: int) -> tuple[int, int, int]:
    more = config.get("eagle_config")
    named = more.get("eagle_aux_hidden_state_layer_ids") if isinstance(more, dict) else None
    layers = feature_layers(num_layers) if named is None else named
    whole = isinstance(layers, list | tuple) and all(type(each) is int for each in layers)
    if not whole or len(layers) != NUM_FEATURES or sorted({*layers}) != [*layers]:
        if named is None:
            raise Misconfigured(f"{folder} is a head, and a model of {num_layers} layers is too small for heads")
        raise Misconfigured(f"{folder}/config.json does not name three layers in order: {named}")
    if not 0 <= layers[0] <= layers[-1] < num_layers:
        raise Misconfigured(f"{folder} takes the inputs of layers {[*layers]}, and this model has {num_layers}")
    first, middle, last = layers
    return first, middle, last


def _read_ids(folder: Path, config: dict[str, Any], tensors: dict[str, TensorInfo], vocab_size: int) -> Ids:
    """The target's token of each output: ``d2t`` says how far it lies behind the output's own number."""
    num_ids = config.get("draft_vocab_size") or vocab_size
    if type(num_ids) is not int or not 0 < num_ids <= vocab_size:
        raise Misconfigured(f"{folder}/config.json: draft_vocab_size is no whole number from 1 to {vocab_size}")
    found = tensors.get(_IDS)
    if found is None:
        if num_ids != vocab_size:
            raise Misconfigured(
                f"{folder} drafts {num_ids} of {vocab_size} tokens and has no {_IDS}: nothing says which"
            )
        return np.arange(vocab_size)
    if found.dtype not in ("I64", "I32") or found.shape != (num_ids,):
        raise Misconfigured(
            f"{_IDS!r} in {found.path} is {found.dtype} {list(found.shape)}, not {num_ids} whole numbers"
        )
    kind = np.int64 if found.dtype == "I64" else np.int32
    ids = np.memmap(found.path, kind, "r", found.offset, found.shape).astype(np.int64) + np.arange(num_ids)
    if ids.min() < 0 or ids.max() >= vocab_size:
        raise Misconfigured(f"{_IDS!r} in {found.path} names tokens that the model does not have")
    return ids


def _shapes(head: Architecture, layer: str, tensors: dict[str, TensorInfo], num_ids: int) -> dict[str, tuple[int, ...]]:
    hidden, inner = head.hidden_size, head.intermediate_size
    heads, kv_heads = head.num_heads * head.head_dim, head.num_kv_heads * head.head_dim
    inside = {
        "self_attn.q_proj": (heads, 2 * hidden),
        "self_attn.k_proj": (kv_heads, 2 * hidden),
        "self_attn.v_proj": (kv_heads, 2 * hidden),
        "self_attn.o_proj": (hidden, heads),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
        "input_layernorm": (hidden,),
        "hidden_norm": (hidden,),
        "post_attention_layernorm": (hidden,),
    }
    shapes: dict[str, tuple[int, ...]] = {f"{layer}.{name}.weight": shape for name, shape in inside.items()}
    shapes |= {"fc.weight": (hidden, NUM_FEATURES * hidden), "norm.weight": (hidden,)}
    optional = {_EMBEDDING: (head.vocab_size, hidden), _OUTPUT: (num_ids, hidden)}
    return shapes | {name: shape for name, shape in optional.items() if name in tensors}
