"""Builds a tokenizer from a GGUF file's vocabulary and merges. Reads no file."""

from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

from axon.errors import Misconfigured

_CONTROL = 3  # a token that stands for no text
_USER_DEFINED = 4
_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_DIGITS = {"llama-bpe": "{1,3}", "qwen2": ""}
"""How many digits stand together, which is all that tells these pre-tokenizers apart."""


def build_tokenizer(metadata: dict[str, Any]) -> Tokenizer:
    """A byte-level BPE tokenizer that gives the ids the model was trained on; raises Misconfigured."""
    if metadata.get("tokenizer.ggml.model") != "gpt2":
        raise Misconfigured(f"tokenizers of kind {metadata.get('tokenizer.ggml.model')!r} are not supported yet")
    tokens: list[str] = metadata["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(BPE(vocab={token: id for id, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = _pre_tokenizer(metadata.get("tokenizer.ggml.pre", "default"))
    tokenizer.decoder = decoders.ByteLevel()
    kinds = metadata.get("tokenizer.ggml.token_type", [])
    pairs = list(zip(tokens, kinds, strict=False))
    tokenizer.add_special_tokens([_verbatim(token, special=True) for token, kind in pairs if kind == _CONTROL])
    tokenizer.add_tokens([_verbatim(token, special=False) for token, kind in pairs if kind == _USER_DEFINED])
    return tokenizer


def _pre_tokenizer(name: str) -> pre_tokenizers.PreTokenizer:
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if name == "gpt-2":
        return byte_level
    if name == "smollm":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level])
    if name in _DIGITS:
        split = pre_tokenizers.Split(Regex(_PATTERN % _DIGITS[name]), behavior="isolated")
        return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    raise Misconfigured(f"the pre-tokenizer {name!r} is not supported yet")


def _verbatim(token: str, *, special: bool) -> AddedToken:
    return AddedToken(token, special=special, normalized=False)
