"""The tokenizer in a GGUF file gives the ids that the model was trained on."""

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import pre_tokenizers

from axon.engine.load.convert.tokenizer import build_tokenizer
from axon.errors import Misconfigured
from axon.text.tokenizer import HFTokenizer
from tests.engine.reference.sentences import SENTENCES

SENTENCEPIECE = json.loads((Path(__file__).parents[2] / "reference" / "sentencepiece.json").read_text())


def sentencepiece_metadata(**changes: Any) -> dict[str, Any]:
    names = {"model": "llama", "tokens": SENTENCEPIECE["tokens"], "scores": SENTENCEPIECE["scores"]}
    names |= {"token_type": SENTENCEPIECE["kinds"], "bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0}
    return {f"tokenizer.ggml.{name}": value for name, value in (names | changes).items()}


def byte_metadata(pre: str, *merged: str, **changes: Any) -> dict[str, Any]:
    """The bytes and, one after the other, these tokens, each merged from the longest known halves."""
    tokens = ["<|begin|>", "<|end|>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    merges = []
    for token in merged:
        at = next(at for at in range(len(token) - 1, 0, -1) if token[:at] in tokens and token[at:] in tokens)
        merges.append(f"{token[:at]} {token[at:]}")
        tokens.append(token)
    names = {"model": "gpt2", "pre": pre, "tokens": tokens, "merges": merges, "bos_token_id": 0, "eos_token_id": 1}
    names["token_type"] = [3, 3] + [1] * (len(tokens) - 2)
    return {f"tokenizer.ggml.{name}": value for name, value in (names | changes).items()}


def pieces(metadata: dict[str, Any], text: str) -> list[str]:
    tokens: list[str] = build_tokenizer(metadata).encode(text, add_special_tokens=False).tokens
    return tokens


@pytest.mark.parametrize("index", range(len(SENTENCES)), ids=lambda index: ascii(SENTENCES[index][:16]))
def test_sentencepieces_ids_are_found_from_the_scores_alone(index: int) -> None:
    tokenizer = build_tokenizer(sentencepiece_metadata())
    text = SENTENCES[index]
    assert tokenizer.encode(text, add_special_tokens=False).ids == SENTENCEPIECE["ids"][index]
    assert tokenizer.decode(SENTENCEPIECE["ids"][index]) == text


def test_sentencepieces_bytes_are_the_text_behind_a_space() -> None:
    tokenizer = HFTokenizer(build_tokenizer(sentencepiece_metadata()))
    for text, ids in zip(SENTENCES, SENTENCEPIECE["ids"], strict=True):
        assert tokenizer.decode(ids) == (" " + text if text else "")


def test_texts_begin_and_end_as_the_file_says() -> None:
    assert build_tokenizer(sentencepiece_metadata()).encode("the").ids[0] == 1, "usual for this kind"
    assert build_tokenizer(sentencepiece_metadata(add_bos_token=False)).encode("the").ids[0] != 1
    assert build_tokenizer(sentencepiece_metadata(add_eos_token=True)).encode("the").ids[-1] == 2
    assert build_tokenizer(byte_metadata("llama-bpe")).encode("a").tokens == ["<|begin|>", "a"]
    assert build_tokenizer(byte_metadata("smollm")).encode("a").tokens == ["a"]
    assert build_tokenizer(byte_metadata("smollm", add_bos_token=True)).encode("a").tokens == ["<|begin|>", "a"]


def test_control_tokens_in_a_text_are_found_and_can_be_left_alone() -> None:
    tokenizer = HFTokenizer(build_tokenizer(byte_metadata("qwen2")))
    assert tokenizer.encode("<|end|>", parse_special=True) == [1]
    assert len(tokenizer.encode("<|end|>")) == 7


@pytest.mark.parametrize(
    ("pre", "expected"),
    [
        ("gpt-2", ["12345", "Ġ67"]),
        ("smollm", ["1", "2", "3", "4", "5", "Ġ", "6", "7"]),
        ("llama-bpe", ["123", "45", "Ġ", "67"]),
        ("qwen2", ["1", "2", "3", "4", "5", "Ġ", "6", "7"]),
        ("tekken", ["1", "2", "3", "4", "5", "Ġ", "6", "7"]),
    ],
)
def test_digits_stand_together_as_the_model_was_trained(pre: str, expected: list[str]) -> None:
    metadata = byte_metadata(pre, "12", "123", "1234", "45", "12345", "67", "Ġ67", "Ġ6")
    assert pieces(metadata, "12345 67") == expected


def test_contractions_and_capitals_are_split_as_each_was_trained() -> None:
    tokens = ("'s", "'S", "He", "LL", "LLo", "HeLLo")
    assert pieces(byte_metadata("qwen2", *tokens), "HeLLo's") == ["HeLLo", "'s"]
    assert pieces(byte_metadata("tekken", "He", "LL", "HeLL", "LLo"), "HeLLo") == ["He", "LLo"]
    assert pieces(byte_metadata("gpt-2", *tokens), "He'S") == ["He", "'", "S"]
    assert pieces(byte_metadata("llama-bpe", *tokens), "He'S") == ["He", "'S"]


def test_a_whole_word_of_the_vocabulary_needs_no_merges_where_the_model_was_trained_so() -> None:
    metadata = byte_metadata("llama-bpe", "ab", "abc") | {"tokenizer.ggml.merges": []}
    assert pieces(metadata, "abc") == ["abc"]
    assert pieces(metadata | {"tokenizer.ggml.pre": "qwen2"}, "abc") == ["a", "b", "c"]


def test_qwen_composes_characters_first() -> None:
    assert pieces(byte_metadata("qwen2"), "e\u0301") == pieces(byte_metadata("qwen2"), "é")
    assert pieces(byte_metadata("llama-bpe"), "e\u0301") != pieces(byte_metadata("llama-bpe"), "é")


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({}, "no tokenizer"),
        (byte_metadata("gpt-2", model="bert"), "'bert'"),
        (byte_metadata("default"), "'default'"),
    ],
    ids=["none", "kind", "pre"],
)
def test_what_cannot_be_built_is_named(metadata: dict[str, Any], reason: str) -> None:
    with pytest.raises(Misconfigured, match=reason):
        build_tokenizer(metadata)
