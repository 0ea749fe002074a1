"""Checks that two models have the same tokens, so that one can draft for the other. Loads no weights."""

import json
from pathlib import Path
from typing import Any

from axon.engine.load.architecture import Architecture
from axon.errors import Misconfigured


def require_same_tokens(model_dir: Path, draft_dir: Path, sizes: tuple[int, int]) -> None:
    """Raises ``Misconfigured`` unless every id stands for the same token in both; ``sizes`` are the vocabularies' sizes
    as the two models' weights have them.

    Only ids pass between the two, so how text is cut into tokens may differ. Rows that pad the weights of one behind
    the last token do not matter; without any tokenizer files the sizes must be equal.
    """
    ours, theirs = (folder / "tokenizer.json" for folder in (model_dir, draft_dir))
    if ours.is_file() and theirs.is_file():
        if ours.read_bytes() == theirs.read_bytes():
            return
        first, second = _tokens(ours), _tokens(theirs)
        if first == second:
            return
        ids = sorted(id for id in {*first, *second} if first.get(id) != second.get(id))
        raise Misconfigured(
            f"engine.draft_model = {draft_dir} has another tokenizer than the model at {model_dir}: they differ in "
            f"{len(ids)} tokens, first in id {ids[0]}, {first.get(ids[0])!r} in the model and {second.get(ids[0])!r} "
            "in the draft model. Give a draft model of the same family, or none."
        )
    if ours.is_file() != theirs.is_file() or sizes[0] != sizes[1]:
        raise Misconfigured(
            f"engine.draft_model = {draft_dir} has {_said(theirs, sizes[1])}, and the model at {model_dir} has "
            f"{_said(ours, sizes[0])}: give a draft model with the same tokenizer, or none."
        )


def common_size(first: Architecture, second: Architecture) -> int:
    """The ids that both models have."""
    return min(first.vocab_size, second.vocab_size)


def _said(path: Path, size: int) -> str:
    return f"{size} tokens and {'a' if path.is_file() else 'no'} tokenizer.json"


def _tokens(path: Path) -> dict[int, str]:
    """The tokens of a tokenizer.json by id."""
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        vocabulary: Any = read["model"]["vocab"]
        if isinstance(vocabulary, dict):
            tokens = {id: token for token, id in vocabulary.items()}
        else:  # a unigram model: a list of tokens with their scores
            tokens = {id: token for id, (token, _) in enumerate(vocabulary)}
        return tokens | {added["id"]: added["content"] for added in read.get("added_tokens", ())}
    except (ValueError, KeyError, TypeError) as error:
        raise Misconfigured(f"The tokenizer {path} cannot be read: {type(error).__name__}: {error}") from error
