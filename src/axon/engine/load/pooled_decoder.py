"""A decoder whose last hidden states are pooled to vectors, read from its folder. Knows no tensors' values."""

from dataclasses import dataclass, replace
from pathlib import Path

from axon.domain.model.embeds import Embeds
from axon.engine.load.architecture import Architecture, read_architecture
from axon.engine.load.family import FAMILIES
from axon.engine.load.sentences import has_pooling, read_config, read_sentences
from axon.engine.load.tensor_files import check_shapes, find_tensors
from axon.errors import Misconfigured

_PREFIX = "model."
"""Stands before the names of a chat model's tensors; a model saved without its head may do without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledDecoder:
    """A decoder of the Llama family, and how a text's vector is made of its last hidden states."""

    architecture: Architecture
    max_model_len: int
    """Tokens of the longest input, special tokens included."""
    pooling: str
    """``mean``, ``cls``, ``max`` or ``lasttoken``."""
    normalizes: bool
    """Whether vectors are scaled to length 1."""
    embeds: Embeds

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors a checkpoint must have, by the names of a chat model's; it needs no head."""
        return {name: shape for name, shape in self.architecture.tensor_shapes().items() if name != "lm_head.weight"}


def is_pooled_decoder(model_dir: Path) -> bool:
    """Whether the folder has a decoder beside which a modules.json of sentence-transformers names a pooling."""
    config = read_config(model_dir)
    return str(config.get("model_type")) in FAMILIES and has_pooling(model_dir)


def read_pooled_decoder(model_dir: Path) -> PooledDecoder:
    """Reads config.json and the files of sentence-transformers; raises Misconfigured."""
    config = read_config(model_dir)
    if config.get("is_causal") is False or config.get("use_bidirectional_attention"):
        raise Misconfigured(f"{model_dir} has a decoder whose tokens see later ones, which is not supported yet")
    architecture, sentences = read_architecture(model_dir), read_sentences(model_dir)
    if not architecture.family.is_plain:
        plain = ", ".join(name for name, family in FAMILIES.items() if family.is_plain)
        raise Misconfigured(
            f"{architecture.model_type} models give no vectors yet; decoders of these types do: {plain}"
        )
    max_model_len = min(architecture.max_model_len, sentences.max_tokens or architecture.max_model_len)
    return PooledDecoder(
        architecture=replace(architecture, max_model_len=max_model_len),
        max_model_len=max_model_len,
        pooling=sentences.pooling,
        normalizes=sentences.normalizes,
        embeds=sentences.embeds,
    )


def check_pooled_decoder(model_dir: Path, decoder: PooledDecoder) -> None:
    """Raises Misconfigured unless the folder has every tensor that the decoder needs, in its shape."""
    left_out = left_out_prefix(model_dir)
    check_shapes(model_dir, {name.removeprefix(left_out): shape for name, shape in decoder.tensor_shapes().items()})


def left_out_prefix(model_dir: Path) -> str:
    """What the folder leaves out before the names of a chat model's tensors."""
    return "" if f"{_PREFIX}embed_tokens.weight" in find_tensors(model_dir) else _PREFIX
