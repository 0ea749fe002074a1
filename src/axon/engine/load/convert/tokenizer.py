"""Builds a tokenizer from a GGUF file's vocabulary. Reads no file.

Two kinds: byte-level BPE (``gpt2``), whose splitting of text the file names, and SentencePiece's BPE (``llama``), whose
merges are found again from the pieces' scores.
"""

from collections.abc import Iterable
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE

from axon.errors import Misconfigured

_NORMAL = 1
_CONTROL = 3  # a token that stands for no text
_USER_DEFINED = 4

_GPT4_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_TEKKEN_PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_PATTERNS = {
    "llama-bpe": _GPT4_PATTERN % "{1,3}",
    "qwen2": _GPT4_PATTERN % "",
    "tekken": _TEKKEN_PATTERN,
}
"""Regular expressions that split text before merging, by the pre-tokenizer's name; the first two differ in digits."""
_WHOLE_WORDS = ("llama-bpe", "tekken")
"""Pre-tokenizers with which a word in the vocabulary is not merged anew, and texts begin with a BOS token."""


def build_tokenizer(metadata: dict[str, Any]) -> Tokenizer:
    """A tokenizer that gives the ids the model was trained on; raises Misconfigured."""
    if "tokenizer.ggml.tokens" not in metadata:
        raise Misconfigured("the GGUF file has no tokenizer")
    kind = metadata.get("tokenizer.ggml.model")
    if kind == "gpt2":
        tokenizer = _byte_level(metadata)
    elif kind == "llama":
        tokenizer = _sentencepiece(metadata)
    else:
        raise Misconfigured(f"tokenizers of kind {kind!r} are not supported yet")
    pairs = list(zip(metadata["tokenizer.ggml.tokens"], metadata.get("tokenizer.ggml.token_type", []), strict=False))
    tokenizer.add_special_tokens([_verbatim(token, special=True) for token, kind in pairs if kind == _CONTROL])
    tokenizer.add_tokens([_verbatim(token, special=False) for token, kind in pairs if kind == _USER_DEFINED])
    _add_ends(tokenizer, metadata)
    return tokenizer


def _byte_level(metadata: dict[str, Any]) -> Tokenizer:
    name = _pre_name(metadata)
    if "tokenizer.ggml.merges" not in metadata:
        raise Misconfigured("the GGUF file's tokenizer has no merges")
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(BPE(vocab=_vocabulary(metadata), merges=merges, ignore_merges=name in _WHOLE_WORDS))
    tokenizer.pre_tokenizer = _pre_tokenizer(name)
    tokenizer.decoder = decoders.ByteLevel()
    if name == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    return tokenizer


def _pre_name(metadata: dict[str, Any]) -> str:
    """The pre-tokenizer's name; older files have other names for that of Llama 3."""
    name = str(metadata.get("tokenizer.ggml.pre", "default"))
    return "llama-bpe" if name in ("llama3", "llama-v3") else name


def _pre_tokenizer(name: str) -> pre_tokenizers.PreTokenizer:
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if name == "gpt-2":
        return byte_level
    if name == "smollm":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level])
    if name in _PATTERNS:
        split = pre_tokenizers.Split(Regex(_PATTERNS[name]), behavior="isolated")
        return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    raise Misconfigured(f"the pre-tokenizer {name!r} is not supported yet")


def _sentencepiece(metadata: dict[str, Any]) -> Tokenizer:
    if "tokenizer.ggml.scores" not in metadata:
        raise Misconfigured("the GGUF file's tokenizer has no scores")
    vocabulary = _vocabulary(metadata)
    unknown = metadata["tokenizer.ggml.tokens"][metadata.get("tokenizer.ggml.unknown_token_id", 0)]
    tokenizer = Tokenizer(
        BPE(vocab=vocabulary, merges=find_merges(metadata), unk_token=unknown, fuse_unk=True, byte_fallback=True)
    )
    spaces: list[normalizers.Normalizer] = [normalizers.Replace(" ", "▁")]
    decoder: list[decoders.Decoder] = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    if metadata.get("tokenizer.ggml.add_space_prefix", True):
        spaces.insert(0, normalizers.Prepend("▁"))
        decoder.append(decoders.Strip(" ", 1, 0))
    tokenizer.normalizer = normalizers.Sequence(spaces)
    tokenizer.decoder = decoders.Sequence(decoder)
    return tokenizer


def find_merges(metadata: dict[str, Any]) -> list[tuple[str, str]]:
    """Every pair of pieces that merges into a third, the third with the highest score first."""
    tokens, scores = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.scores"]
    kinds = metadata.get("tokenizer.ggml.token_type", [_NORMAL] * len(tokens))
    ids = {token: id for id, (token, kind) in enumerate(zip(tokens, kinds, strict=True)) if kind == _NORMAL}
    merges: list[tuple[float, str, str]] = []
    for token, id in ids.items():
        halves = [(token[:at], token[at:]) for at in range(1, len(token))]
        known = [(left, right) for left, right in halves if left in ids and right in ids]
        merges += [(-scores[id], *pair) for pair in sorted(known, key=lambda pair: (ids[pair[0]], ids[pair[1]]))]
    merges.sort(key=lambda merge: merge[0])
    return [(left, right) for _, left, right in merges]


def _add_ends(tokenizer: Tokenizer, metadata: dict[str, Any]) -> None:
    """Adds the BOS and EOS tokens around texts, where the model was trained with them."""
    is_usual = metadata["tokenizer.ggml.model"] == "llama" or _pre_name(metadata) in _WHOLE_WORDS
    begin = _end_token(metadata, "bos", is_usual=is_usual)
    end = _end_token(metadata, "eos", is_usual=False)
    ends = [*begin, *end]
    if ends:
        pieces = [*(token for token, _ in begin), "$A", *(token for token, _ in end)]
        tokenizer.post_processor = processors.TemplateProcessing(single=pieces, special_tokens=list(dict(ends).items()))


def _end_token(metadata: dict[str, Any], name: str, *, is_usual: bool) -> Iterable[tuple[str, int]]:
    id = metadata.get(f"tokenizer.ggml.{name}_token_id")
    is_added = metadata.get(f"tokenizer.ggml.add_{name}_token", is_usual)
    return [(metadata["tokenizer.ggml.tokens"][id], id)] if is_added and id is not None else []


def _vocabulary(metadata: dict[str, Any]) -> dict[str, int]:
    return {token: id for id, token in enumerate(metadata["tokenizer.ggml.tokens"])}


def _verbatim(token: str, *, special: bool) -> AddedToken:
    return AddedToken(token, special=special, normalized=False)
